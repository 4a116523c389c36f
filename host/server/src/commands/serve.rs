//! `keywright serve`.

use std::{path::Path, process::ExitCode};

use crate::{
    commands, config::Config, listener, management::ManagementListener, started::StartRefused,
    telemetry, wiring,
};

/// Runs a server as this file configures it, until it is told to end.
pub(crate) fn serve(file: &Path) -> Result<ExitCode, StartRefused> {
    let config = &Config::load(file)?;
    telemetry::start(&config.log)?;
    commands::on_threads(async {
        listener::survive_failing_writes()?;
        let mut served = wiring::assemble(config, file).await?;
        let management = match served.management.take() {
            Some(router) => ManagementListener::bind(&config.management, router).await?,
            None => None,
        };
        let serving = listener::serve(served, config);
        match management {
            Some(management) => tokio::select! {
                outcome = serving => outcome,
                never = management.serve() => match never {},
            },
            None => serving.await,
        }?;
        Ok(ExitCode::SUCCESS)
    })
}
