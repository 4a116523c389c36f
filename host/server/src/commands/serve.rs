//! `keywright serve`.

use std::process::ExitCode;

use crate::{
    commands, config::Config, listener, management::ManagementListener, started::StartRefused,
    telemetry, wiring,
};

/// Runs a server until it is told to end.
pub(crate) fn serve(config: &Config) -> Result<ExitCode, StartRefused> {
    telemetry::start(&config.log)?;
    commands::on_threads(async {
        let mut served = wiring::assemble(config).await?;
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
