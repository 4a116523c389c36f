//! Bulk regeneration of a tree of certificates, compared with generating the same number of keys.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Instant,
};

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::{
    Outcome, server,
    statistics::{Sample, millis},
    table::{Aim, Table},
};

/// Measures a server that regenerates everything below one root, and the same server generating as many RSA-2048 keys
/// for as many concurrent callers as it has threads. The difference is the cost of the certificates: reading,
/// recovering, signing, checking, encrypting, and writing them in one transaction.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let server = Arc::new(server::start().await?);
        make_tree(&server).await?;
        let mut together = Vec::new();
        let mut keys = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            regenerate(&server).await?;
            together.push(millis(begun.elapsed()));
            let begun = Instant::now();
            make_keys(&server).await?;
            keys.push(millis(begun.elapsed()));
        }
        let (together, keys) = (Sample::new(together).median(), Sample::new(keys).median());
        let mut table = Table::new(
            format!("{CERTIFICATES} certificates on two levels below a root, {ROUNDS} rounds, ms"),
            &["", "regenerated", "keys alone", "ratio", "aim"],
        );
        table.row([
            "all together".to_owned(),
            format!("{together:.0}"),
            format!("{keys:.0}"),
            format!("{:.2}", together / keys),
            Aim::AtMost(1.25).verdict(together / keys),
        ]);
        Ok(table)
    })
}

async fn make_tree(server: &Arc<Server>) -> Outcome<()> {
    let authority = |name: &str, ca: &str| {
        let parameters = json!({"common_name": name, "is_ca": true, "ca": ca});
        json!({"name": name, "type": "certificate", "parameters": parameters})
    };
    let middle = |number: usize| format!("/middle/{}", number % AUTHORITIES);
    let leaf = |number: usize| {
        let parameters = json!({"common_name": "leaf", "ca": middle(number)});
        json!({"name": format!("/leaf/{number}"), "type": "certificate", "parameters": parameters})
    };
    let middles = (0..AUTHORITIES).map(|number| authority(&middle(number), "/root"));
    generate_all(server, vec![authority("/root", "")]).await?;
    generate_all(server, middles.collect()).await?;
    generate_all(server, (AUTHORITIES..CERTIFICATES).map(leaf).collect()).await
}

async fn regenerate(server: &Server) -> Outcome<()> {
    let body = json!({"signed_by": "/root"});
    let answer = server.post("/api/v1/bulk-regenerate", body).await;
    let names = answer.expect(200).json();
    let count = names
        .get("regenerated_credentials")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    if count != CERTIFICATES {
        return Err(format!("{count} certificates were regenerated").into());
    }
    Ok(())
}

async fn make_keys(server: &Arc<Server>) -> Outcome<()> {
    let key = |number: usize| json!({"name": format!("/key/{number}"), "type": "rsa", "mode": "overwrite"});
    generate_all(server, (0..CERTIFICATES).map(key).collect()).await
}

/// Sends generate requests from as many concurrent callers as there are cores.
async fn generate_all(server: &Arc<Server>, bodies: Vec<Value>) -> Outcome<()> {
    let bodies = Arc::new(Mutex::new(bodies));
    let callers: Vec<_> = (0..thread::available_parallelism()?.get())
        .map(|_| {
            let (server, bodies) = (Arc::clone(server), Arc::clone(&bodies));
            tokio::spawn(async move {
                loop {
                    let next = bodies.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let Some(body) = next else { break };
                    server.post("/api/v1/data", body).await.expect(200);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await?;
    }
    Ok(())
}

const ROUNDS: usize = 3;
/// The number of certificates below the root.
const CERTIFICATES: usize = 200;
/// The number of them that are CAs, which sign the others.
const AUTHORITIES: usize = 4;
