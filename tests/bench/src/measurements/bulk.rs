//! Operations on the whole store: bulk regeneration of a tree of certificates, and rotation of encryption keys.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Instant,
};

use keywright_harness::{Server, run_command};
use serde_json::{Value, json};

use crate::{
    server::{self, Connection, Request},
    statistics::{Outcome, Sample, millis, number},
    store::Engine,
    table::{Table, Threshold, no_goal},
};

/// Measures a server that regenerates all certificates below one root, and the same server generating the same number of
/// RSA-2048 keys, with one concurrent caller per core. The difference is the cost of the certificates: reading, recovering,
/// signing, checking, encrypting, and writing them in one transaction.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let server = Arc::new(server::start().await?);
        generate_tree(&server).await?;
        let mut in_bulk = Vec::new();
        let mut keys = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            regenerate(&server).await?;
            in_bulk.push(millis(begun.elapsed()));
            let begun = Instant::now();
            generate_keys(&server).await?;
            keys.push(millis(begun.elapsed()));
        }
        let (in_bulk, keys) = (Sample::new(in_bulk).median(), Sample::new(keys).median());
        let mut table = Table::new(
            format!("{CERTIFICATES} certificates on two levels below a root, {ROUNDS} rounds, ms"),
            &["", "regenerated", "keys alone", "ratio", "goal"],
        );
        table.row([
            "bulk regeneration".to_owned(),
            format!("{in_bulk:.0}"),
            format!("{keys:.0}"),
            format!("{:.2}", in_bulk / keys),
            Threshold::AtMost(1.25).verdict(in_bulk / keys),
        ]);
        Ok(table)
    })
}

async fn generate_tree(server: &Arc<Server>) -> Outcome<()> {
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
    let response = server.post("/api/v1/bulk-regenerate", body).await;
    let names = response.expect(200).json();
    let count = names
        .get("regenerated_credentials")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    if count != CERTIFICATES {
        return Err(format!("{count} of {CERTIFICATES} certificates were regenerated").into());
    }
    Ok(())
}

async fn generate_keys(server: &Arc<Server>) -> Outcome<()> {
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
/// The number of these certificates that are CAs and sign the others.
const AUTHORITIES: usize = 4;

/// Measures `keywright keys rotate --wait` on a store with this many versions, with default settings, on each engine. Also
/// measures how fast many clients set these versions.
pub(crate) fn measure_rotation(sizes: &[usize]) -> Outcome<Table> {
    let versions = sizes.iter().max().copied().unwrap_or(VERSIONS);
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut table = Table::new(
            format!("{versions} versions of {} bytes", server::VALUE_BYTES),
            &["", "versions/s", "goal"],
        );
        for engine in Engine::all() {
            let (set, rotated) = rotate(&engine, versions).await?;
            for (what, per_second) in [
                (format!("set by {CLIENTS} clients"), set),
                ("rotated".to_owned(), rotated),
            ] {
                table.row([
                    format!("{engine}: {what}"),
                    format!("{per_second:.0}"),
                    no_goal(),
                ]);
            }
        }
        Ok(table)
    })
}

/// Returns the numbers of versions set and rotated per second.
async fn rotate(engine: &Engine, versions: usize) -> Outcome<(f64, f64)> {
    let database = engine.new_database();
    let directory = server::directory()?;
    let (former, later) = (
        directory.path().join("former.key"),
        directory.path().join("later.key"),
    );
    fs::write(&former, "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=")?;
    fs::write(&later, "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=")?;
    let options = database.options().encryption(&key(&former, true));
    let server = Server::start_in(directory, &options).await;
    let begun = Instant::now();
    set(&server, versions).await?;
    let set_per_second = number(versions) / begun.elapsed().as_secs_f64();

    let directory = server.stop().await;
    let keys = format!(
        "{}{}[encryption.rotation]\nenabled = false\n",
        key(&later, true),
        key(&former, false)
    );
    let options = database.options().encryption(&keys);
    let server = Server::start_in(directory, &options).await;
    let begun = Instant::now();
    let rotated = run_command(server.directory(), &["keys", "rotate", "--wait"]);
    let taken = begun.elapsed();
    if rotated.status != Some(0) {
        return Err(format!("the keys were not rotated: {rotated:?}").into());
    }
    let usage = server::connect(&server)
        .await?
        .get("/api/v1/key-usage")
        .await?;
    let usage: Value = serde_json::from_slice(&usage)?;
    if usage.get("active_key").and_then(Value::as_u64) != Some(u64::try_from(versions)?) {
        return Err(format!("some versions were not rotated: {usage}").into());
    }
    Ok((set_per_second, number(versions) / taken.as_secs_f64()))
}

/// Sets this many versions, ten of each credential.
async fn set(server: &Server, versions: usize) -> Outcome<()> {
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let connection = server::connect(server).await?;
        let numbers = (client..versions).step_by(CLIENTS).collect();
        clients.push(tokio::spawn(set_each(connection, client, numbers)));
    }
    for client in clients {
        client.await??;
    }
    Ok(())
}

async fn set_each(mut connection: Connection, client: usize, numbers: Vec<usize>) -> Outcome<()> {
    for number in numbers {
        let name = format!("/rotated/{client}/{}", number / CLIENTS / VERSIONS_EACH);
        connection
            .send(Request::set(&server::set_body(&name)))
            .await?;
    }
    Ok(())
}

/// Returns the configuration section of an encryption key.
fn key(file: &Path, is_active: bool) -> String {
    let file = file.display();
    format!("[[encryption.keys]]\nprovider = \"raw\"\nfile = \"{file}\"\nactive = {is_active}\n")
}

const VERSIONS: usize = 10_000;
const VERSIONS_EACH: usize = 10;
const CLIENTS: usize = 64;
