//! `keywright plugin inspect` and `keywright plugin push`.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use indicatif::ProgressBar;
use keywright_registry::{PushTarget, Pushed, push};
use keywright_runtime::{ComponentSource, InspectedGenerator, Inspection, Limits, PluginUnderTest};
use serde_json::Map;

use super::{
    super::output::{self, escaped},
    arguments::{
        ComponentArguments, OutputForm, RegistryArguments, not_loaded, pretty, to_json,
        uncached_host,
    },
};
use crate::{
    process::on_threads,
    started::{StartupContext, StartupError},
};

/// Shows a component.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show a component and the configuration for it
  keywright plugin inspect wireguard.wasm
  # Print JSON, including the schemas
  keywright plugin inspect wireguard.wasm --output json")]
pub(crate) struct Inspect {
    #[command(flatten)]
    component: ComponentArguments,
}

impl Inspect {
    pub(super) fn execute(self, progress: &ProgressBar) -> Result<ExitCode, StartupError> {
        let plugin = self.component.open_with_notes(progress)?;
        let inspection = plugin.inspect().while_doing("inspecting the component")?;
        progress.finish_and_clear();
        output::print(&match self.component.output {
            OutputForm::Json => pretty(&to_json(&inspection)?),
            OutputForm::Table => self.table(&inspection),
        })?;
        Ok(output::status(inspection.refusal.is_some()))
    }

    fn table(&self, inspection: &Inspection) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<12} {}", escaped(value));
        };
        line("component", &self.component.file.display().to_string());
        line("bytes", &inspection.bytes.to_string());
        line("sha256", &inspection.sha256);
        if let Some(version) = &inspection.interface_version {
            line("built for", version);
        }
        for (name, interfaces) in [
            ("imports", &inspection.imports),
            ("exports", &inspection.exports),
        ] {
            for interface in interfaces {
                line(name, interface);
            }
        }
        match &inspection.generator {
            Some(generator) => describe(generator, &mut line),
            None if inspection.is_resolver => line("role", "resolver"),
            None => {}
        }
        if let Some(schema) = &inspection.settings_schema {
            line("settings", &schema.to_string());
        }
        if let Some(refusal) = &inspection.refusal {
            line("refused", refusal);
        } else {
            text.push_str(&self.configuration(inspection));
        }
        text
    }

    /// Returns the section of a configuration for the component.
    fn configuration(&self, inspection: &Inspection) -> String {
        let section = match &inspection.generator {
            Some(generator) => format!("generators.{}", generator.credential_type),
            None => "resolver".to_owned(),
        };
        let grants: Vec<String> = inspection
            .grants
            .iter()
            .map(|grant| format!("\"{grant}\""))
            .collect();
        let is_derived = |generator: &InspectedGenerator| generator.entropy_bits_min.is_none();
        let derived = if inspection.generator.as_ref().is_some_and(is_derived) {
            "derived = true\n"
        } else {
            ""
        };
        let file = toml::Value::String(self.component.file.display().to_string());
        format!(
            "\n[{section}]\ncomponent = {file}\nsha256 = \"{}\"\ngrants = [{}]\n{derived}",
            inspection.sha256,
            grants.join(", "),
        )
    }
}

fn describe(generator: &InspectedGenerator, line: &mut impl FnMut(&str, &str)) {
    line("role", "generator");
    line("type", &generator.credential_type);
    line("version", &generator.plugin_version);
    line("summary", &generator.summary);
    match generator.entropy_bits_min {
        Some(bits) => line("randomness", &format!("at least {bits} bits (declared)")),
        None => line("randomness", "none: derives its values (declared)"),
    }
    if let Some(parameter) = &generator.issuer_parameter {
        line("issuer", &format!("named by the parameter {parameter}"));
    }
    if !generator.input_parameters.is_empty() {
        let named = generator.input_parameters.join(", ");
        line("inputs", &format!("named by the parameters {named}"));
    }
    line("parameters", &generator.parameters_schema.to_string());
    line("value", &generator.value_schema.to_string());
}

/// Pushes a component to a registry.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Push a component and print the reference for a configuration
  keywright plugin push wireguard.wasm oci://registry.example.com/plugins/wireguard:1.0.0
  # Log in with a password or access token from a file
  keywright plugin push wireguard.wasm oci://registry.example.com/plugins/wireguard:1.0.0 --user ada --password-file token")]
pub(crate) struct Push {
    /// Component to push. If `FILE.minisig` exists, it is pushed, too.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Target: `oci://HOST[:PORT]/REPOSITORY:TAG`
    #[arg(value_name = "REFERENCE", value_parser = str::parse::<PushTarget>)]
    target: PushTarget,
    #[command(flatten)]
    registry: RegistryArguments,
}

impl Push {
    pub(super) fn execute(self) -> Result<ExitCode, StartupError> {
        let registry = self.registry.config(self.target.host())?;
        let bytes = ComponentSource::File(self.file.clone())
            .read()
            .map(Arc::from);
        let bytes: Arc<[u8]> = bytes.on_file("reading", &self.file)?;
        let inspection = self.inspection(Arc::clone(&bytes))?;
        if let Some(refusal) = &inspection.refusal {
            self.print_message(&format!("no server would load it: {refusal}"));
            return Ok(output::status(true));
        }
        let (exports, imports) = (&inspection.exports, &inspection.imports);
        let pushed = Pushed::new(&self.file, bytes.to_vec(), exports, imports)
            .on_file("reading the signature of", &self.file)?;
        let reference = on_threads(async {
            let host = self.target.host();
            let registry = registry.registry(host)?;
            push(&registry, &self.target, &pushed, PUSH_DEADLINE)
                .await
                .while_doing(format!("pushing to {host}"))
        })?;
        self.print_message(if pushed.is_signed() {
            "pushed, with its minisign signature"
        } else {
            "pushed, without a minisign signature: there is no .minisig file"
        });
        output::print(&format!("{reference}\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    fn inspection(&self, bytes: Arc<[u8]>) -> Result<Inspection, StartupError> {
        let name = self.file.display().to_string();
        let component = ComponentSource::Bytes { name, bytes };
        PluginUnderTest::open(component, Map::new(), Limits::default(), &uncached_host())
            .map_err(|cause| not_loaded(&self.file, cause))?
            .inspect()
            .while_doing("inspecting the component")
    }

    /// Prints a message to standard error; standard output contains only the reference.
    fn print_message(&self, what: &str) {
        // Standard error may be closed.
        let _ = writeln!(io::stderr(), "{}: {}", self.file.display(), escaped(what));
    }
}

const PUSH_DEADLINE: Duration = Duration::from_mins(10);
