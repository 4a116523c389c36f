//! A server without requests: the time from starting the process to its first response, and its memory.

use std::time::Duration;

use keywright_harness::Server;

use crate::{
    process::size_mib,
    server,
    statistics::{Outcome, Sample, millis},
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
                "from starting the process to the first response over TLS, {ROUNDS} starts each, ms"
            ),
            &["", "median", "longest", "goal"],
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
            "warm: both exist",
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

/// Measures the resident memory after a start with a warm cache, and after an idle period.
pub(crate) fn measure_memory() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        // The first start may have to compile.
        drop(server::start().await?);
        let server = server::start().await?;
        let mut table = Table::new(
            "resident, MiB",
            &["", "all (VmRSS)", "anonymous (RssAnon)", "goal for all"],
        );
        for (what, wait, aim) in [
            ("after the start", Duration::ZERO, None),
            (
                "10 s later",
                Duration::from_secs(10),
                Some(Aim::AtMost(80.0)),
            ),
        ] {
            tokio::time::sleep(wait).await;
            let all = size_mib(server.process_id(), "VmRSS")?;
            table.row([
                what.to_owned(),
                format!("{all:.1}"),
                format!("{:.1}", size_mib(server.process_id(), "RssAnon")?),
                aim.map_or_else(no_aim, |aim: Aim| aim.verdict(all)),
            ]);
        }
        Ok(table)
    })
}
