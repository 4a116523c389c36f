//! The commands of the program. Longer commands have their own files.

mod backup;
mod check;
mod keys;
mod output;
mod plugin;

use std::{fmt::Write, path::Path, process::ExitCode};

use clap_complete::{Shell, generate};

use crate::{
    app::assemble,
    config::{Config, Findings, ListenAddress, reference},
    config_check::{self, Extent},
    development,
    listener::{self, BoundAddresses},
    management::ManagementListener,
    process::{StopSignals, now, on_threads, require_http_date},
    started::{StartupContext, StartupError},
    telemetry,
};

pub(crate) use self::{
    backup::backup,
    check::check,
    keys::{KeysCommand, keys},
    output::print_error,
    plugin::{PluginCommand, plugin},
};

/// Runs a server with this configuration file, until it receives a shutdown signal.
pub(crate) fn serve(file: &Path) -> Result<ExitCode, StartupError> {
    let config = &Config::load(file)?;
    let _log = telemetry::start_buffered(&config.log)?;
    require_http_date(now())?;
    on_threads(async {
        let mut stop = StopSignals::listen()?;
        tracing::info!(keywright.version = env!("CARGO_PKG_VERSION"), "starting");
        // All TLS of this process must use the same provider; a second installation changes nothing.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let bound = BoundAddresses::bind(&config.server.listen, "server.listen")?;
        let management = config.management.listen.as_ref();
        let management = management
            .map(|address| BoundAddresses::bind(address, "management.listen"))
            .transpose()?;
        let mut app = tokio::select! {
            biased;
            () = stop.received() => {
                tracing::info!("shutting down: the start is incomplete");
                return Ok(ExitCode::SUCCESS);
            }
            app = assemble(config, file, bound.addresses()) => app?,
        };
        let management = management
            .zip(app.management.take())
            .map(|(bound, router)| ManagementListener::listen(bound, router))
            .transpose()?;
        let serving = listener::serve(app, bound, config, stop);
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

/// Runs a server for development. Generates its configuration at the first start.
pub(crate) fn develop(
    directory: &Path,
    plugins: &Path,
    listen: &ListenAddress,
) -> Result<ExitCode, StartupError> {
    let config_file = development::prepare(directory, plugins, listen)?;
    serve(&config_file)
}

/// Prints the errors and warnings of a configuration, one per line.
pub(crate) fn check_config(file: &Path, extent: Extent) -> Result<ExitCode, StartupError> {
    on_threads(async {
        let findings = Box::pin(config_check::check(file, extent)).await?;
        output::print(&report(&findings, file))?;
        Ok(if findings.mistakes.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    })
}

fn report(findings: &Findings, file: &Path) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for warning in &findings.warnings {
        let _ = writeln!(text, "warning: {}", output::escaped(&warning.to_string()));
    }
    for mistake in &findings.mistakes {
        let _ = writeln!(text, "{}", output::escaped(&mistake.to_string()));
    }
    let file = file.display();
    let _ = match findings.mistakes.len() {
        0 => writeln!(text, "{file} is valid"),
        1 => writeln!(text, "{file} is invalid: 1 error"),
        count => writeln!(text, "{file} is invalid: {count} errors"),
    };
    text
}

pub(crate) fn config_reference() -> Result<ExitCode, StartupError> {
    output::print(&reference(&Config::schema()))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn completions(program: &clap::Command, shell: Shell) -> Result<ExitCode, StartupError> {
    // The scripts would offer hidden commands.
    let commands = program.get_subcommands();
    let shown = commands.filter(|command| !command.is_hide_set()).cloned();
    let mut program = clap::Command::new("keywright")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown);
    let mut script = Vec::new();
    generate(shell, &mut program, "keywright", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual pages of the program and its commands: `keywright.1`, `keywright-get.1`, and so on.
pub(crate) fn man_pages(
    program: clap::Command,
    directory: &Path,
) -> Result<ExitCode, StartupError> {
    development::create_folder(directory, 0o777)?;
    clap_mangen::generate_to(program, directory)
        .on_file("writing the manual pages to", directory)?;
    Ok(ExitCode::SUCCESS)
}
