//! The speed of rotating encryption keys.

use std::{fs, path::Path, time::Instant};

use keywright_harness::{Server, run_command};
use serde_json::Value;

use crate::{
    Outcome,
    client::{Connection, Request},
    engine::Engine,
    server,
    statistics::number,
    table::{Table, no_aim},
};

/// Measures `keywright keys rotate --wait` on a store with this many versions, with default settings, on each engine,
/// and the speed at which many clients set them before.
pub(crate) fn measure(sizes: &[usize]) -> Outcome<Table> {
    let versions = sizes.iter().max().copied().unwrap_or(VERSIONS);
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut table = Table::new(
            format!("{versions} versions of {} bytes", server::VALUE_BYTES),
            &["", "versions/s", "aim"],
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
                    no_aim(),
                ]);
            }
        }
        Ok(table)
    })
}

/// The numbers of versions set and rotated per second.
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
        return Err(format!("not everything was rotated: {usage}").into());
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

/// The section of a key.
fn key(file: &Path, is_active: bool) -> String {
    let file = file.display();
    format!("[[encryption.keys]]\nprovider = \"raw\"\nfile = \"{file}\"\nactive = {is_active}\n")
}

const VERSIONS: usize = 10_000;
const VERSIONS_EACH: usize = 10;
const CLIENTS: usize = 64;
