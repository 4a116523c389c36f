//! `keywright plugin inspect`.

use std::{fmt::Write, process::ExitCode};

use clap::Args;
use keywright_runtime::{InspectedGenerator, Inspection};

use super::{ComponentArguments, OutputForm, json, pretty, seen};
use crate::{commands::output, started::StartRefused};

/// The exit status if no server would load the component.
pub(super) const REFUSED: u8 = 3;

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
    pub(super) fn execute(self) -> Result<ExitCode, StartRefused> {
        let candidate = self.component.open()?;
        let inspection = candidate
            .inspect()
            .map_err(|failure| StartRefused::while_doing("inspecting the component", failure))?;
        output::print(&match self.component.output {
            OutputForm::Json => pretty(&json(&inspection)?),
            OutputForm::Table => self.table(&inspection),
        })?;
        Ok(match inspection.refusal {
            None => ExitCode::SUCCESS,
            Some(_) => ExitCode::from(REFUSED),
        })
    }

    fn table(&self, inspection: &Inspection) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<12} {}", seen(value));
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
    line("parameters", &generator.parameters_schema.to_string());
    line("value", &generator.value_schema.to_string());
}
