//! The memory of an idle server.

use std::time::Duration;

use crate::{
    Outcome,
    process::size_mib,
    server,
    table::{Aim, Table, no_aim},
};

/// Measures the resident memory after a start with a warm cache, and after an idle period.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        // The first start may have to compile.
        drop(server::start().await?);
        let server = server::start().await?;
        let mut table = Table::new(
            "resident, MiB",
            &["", "all (VmRSS)", "its own (RssAnon)", "aim for all"],
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
