//! `keywright serve`.

use std::{path::Path, process::ExitCode};

use crate::{
    config::Config,
    listener,
    listening::BoundAddresses,
    management::ManagementListener,
    process::{self, on_threads},
    started::StartRefused,
    telemetry, wiring,
};

/// Runs a server with this configuration file, until it receives a shutdown signal.
pub(crate) fn serve(file: &Path) -> Result<ExitCode, StartRefused> {
    let config = &Config::load(file)?;
    let _log = telemetry::start_buffered(&config.log)?;
    on_threads(async {
        process::survive_failing_writes()?;
        tracing::info!(keywright.version = env!("CARGO_PKG_VERSION"), "starting");
        // All TLS of this process must use the same provider; a second installation changes nothing.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let bound = BoundAddresses::bind(&config.server.listen, "server.listen")?;
        let management = config.management.listen.as_ref();
        let management = management
            .map(|address| BoundAddresses::bind(address, "management.listen"))
            .transpose()?;
        let mut served = wiring::assemble(config, file, bound.addresses()).await?;
        let management = management
            .zip(served.management.take())
            .map(|(bound, router)| ManagementListener::listen(bound, router))
            .transpose()?;
        let serving = listener::serve(served, bound, config);
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
