//! `keywright plugin push`.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use keywright_registry::{PushTarget, Pushed, Signed, push};
use keywright_runtime::{ComponentSource, Inspection, Limits, PluginUnderTest};
use serde_json::Map;

use super::{inspect::REFUSED, registry::RegistryArguments, seen};
use crate::{
    commands::{on_threads, output},
    started::StartRefused,
};

/// Pushes a component to a registry.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Push a component and print the reference for a configuration
  keywright plugin push wireguard.wasm oci://registry.example.com/plugins/wireguard:1.0.0
  # Log in with a password or access token from a file
  keywright plugin push wireguard.wasm oci://registry.example.com/plugins/wireguard:1.0.0 --user ada --password-file token")]
pub(crate) struct Push {
    /// The component. If `FILE.minisig` exists, it is pushed, too.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The target: `oci://HOST[:PORT]/REPOSITORY:TAG`
    #[arg(value_name = "REFERENCE", value_parser = str::parse::<PushTarget>)]
    target: PushTarget,
    #[command(flatten)]
    registry: RegistryArguments,
}

impl Push {
    pub(super) fn execute(self) -> Result<ExitCode, StartRefused> {
        let registry = self.registry.config(self.target.host())?;
        let bytes = ComponentSource::File(self.file.clone())
            .read()
            .map(Arc::from);
        let bytes: Arc<[u8]> = bytes.map_err(|refusal| self.refused("reading", refusal))?;
        let inspection = self.inspection(Arc::clone(&bytes))?;
        if let Some(refusal) = &inspection.refusal {
            self.print_message(&format!("no server would load it: {refusal}"));
            return Ok(ExitCode::from(REFUSED));
        }
        let (exports, imports) = (&inspection.exports, &inspection.imports);
        let pushed = Pushed::new(&self.file, bytes.to_vec(), exports, imports)
            .map_err(|refused| self.refused("reading the signature of", refused))?;
        let pushed = on_threads(async {
            let host = self.target.host();
            let registry = registry.registry(host)?;
            push(&registry, &self.target, &pushed, PUSH_DEADLINE)
                .await
                .map_err(|fault| StartRefused::while_doing(format!("pushing to {host}"), fault))
        });
        let (reference, signed) = pushed?;
        self.print_message(match signed {
            Signed::ByMinisign => "pushed, with its minisign signature",
            Signed::No => "pushed, without a minisign signature: there is no .minisig file",
        });
        output::print(&format!("{reference}\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Inspects the component.
    fn inspection(&self, bytes: Arc<[u8]>) -> Result<Inspection, StartRefused> {
        let name = self.file.display().to_string();
        let component = ComponentSource::Bytes { name, bytes };
        PluginUnderTest::open(component, Map::new(), Limits::default())
            .map_err(|refused| StartRefused::while_doing("loading the component", refused))?
            .inspect()
            .map_err(|failure| StartRefused::while_doing("inspecting the component", failure))
    }

    fn refused(
        &self,
        doing: &str,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> StartRefused {
        StartRefused::file(doing, &self.file, cause)
    }

    /// Prints a message to standard error; standard output contains only the reference.
    fn print_message(&self, what: &str) {
        // Standard error may be closed.
        let _ = writeln!(io::stderr(), "{}: {}", self.file.display(), seen(what));
    }
}

/// Maximum duration of a push.
const PUSH_DEADLINE: Duration = Duration::from_mins(10);
