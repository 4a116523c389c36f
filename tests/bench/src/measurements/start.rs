//! A server without requests: the time from starting the process to its first response, and its memory.

use std::time::Duration;

use keywright_harness::Server;

use crate::{
    process::size_mib,
    server,
    statistics::{Outcome, Sample, millis},
    table::{Table, Threshold, no_goal},
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
            Some(Threshold::AtMost(300.0)),
        );
        Ok(table)
    })
}

fn row(table: &mut Table, what: &str, times: &Sample, threshold: Option<Threshold>) {
    table.row([
        what.to_owned(),
        format!("{:.0}", times.median()),
        format!("{:.0}", times.percentile(100)),
        threshold.map_or_else(no_goal, |threshold| threshold.verdict(times.median())),
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
        for (what, wait, threshold) in [
            ("after the start", Duration::ZERO, None),
            (
                "10 s later",
                Duration::from_secs(10),
                Some(Threshold::AtMost(80.0)),
            ),
        ] {
            tokio::time::sleep(wait).await;
            let all = size_mib(server.process_id(), "VmRSS")?;
            table.row([
                what.to_owned(),
                format!("{all:.1}"),
                format!("{:.1}", size_mib(server.process_id(), "RssAnon")?),
                threshold.map_or_else(no_goal, |threshold: Threshold| threshold.verdict(all)),
            ]);
        }
        Ok(table)
    })
}
