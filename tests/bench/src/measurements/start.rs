//! The time from starting the process to its first response.

use keywright_harness::Server;

use crate::{
    Outcome, server,
    statistics::{Sample, millis},
    table::{Aim, Table, no_aim},
};

/// Measures starts in an empty folder, and in the folder of the previous server.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut cold = Vec::new();
        let mut warm = Vec::new();
        for _ in 0..ROUNDS {
            let cache = server::directory()?;
            let cache_directory = cache.path().join("plugins");
            let options = server::options().environment(
                "KEYWRIGHT_PLUGINS__CACHE_DIRECTORY",
                &cache_directory.display().to_string(),
            );
            let server = Server::start_in(server::directory()?, &options).await;
            cold.push(millis(server.started_in()));
            let server = Server::start_in(server.stop().await, &options).await;
            warm.push(millis(server.started_in()));
        }
        let mut table = Table::new(
            format!(
                "from starting the process to the first answer over TLS, {ROUNDS} starts each, ms"
            ),
            &["", "median", "longest", "aim"],
        );
        row(
            &mut table,
            "cold: new database, no compiled plugins",
            &Sample::new(cold),
            None,
        );
        let warm = Sample::new(warm);
        row(
            &mut table,
            "warm: both there",
            &warm,
            Some(Aim::AtMost(300.0)),
        );
        Ok(table)
    })
}

fn row(table: &mut Table, what: &str, times: &Sample, aim: Option<Aim>) {
    table.row([
        what.to_owned(),
        format!("{:.0}", times.median()),
        format!("{:.0}", times.percentile(100)),
        aim.map_or_else(no_aim, |aim| aim.verdict(times.median())),
    ]);
}

const ROUNDS: usize = 7;
