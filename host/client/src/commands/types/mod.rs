//! `keywright types`.

mod schema;

use clap::Args;
use serde_json::value::{RawValue, to_raw_value};

use super::{Context, Example, Failure, Outcome, Verb, help};
use crate::{
    KnownType, Plugin,
    output::{Shown, Table},
};

/// Show the credential types that the server knows, or one of them with all its parameters.
///
/// Each parameter can be given to `generate` as `--param NAME=VALUE`, those of types that were added to the server by a plugin
/// too. JSON and YAML have the whole JSON Schemas of parameters and values.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Types {
    /// The name of one type.
    name: Option<String>,
}

impl Verb for Types {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let types = context.client()?.types().await;
        let types = types.map_err(|error| {
            if error.is_not_found() {
                Failure::NotFound("the server does not tell which types it knows".to_owned())
            } else {
                error.into()
            }
        })?;
        let Some(name) = &self.name else {
            context.output.show(&ShownTypes(&types))?;
            return Ok(Outcome::Done);
        };
        let is_named = |known: &&KnownType| known.name.eq_ignore_ascii_case(name);
        let named = types.iter().find(is_named);
        let named = named
            .ok_or_else(|| Failure::NotFound(format!("the server knows no type of name {name}")))?;
        context.output.show(&ShownType(named))?;
        Ok(Outcome::Done)
    }
}

struct ShownTypes<'a>(&'a [KnownType]);

struct ShownType<'a>(&'a KnownType);

impl Shown for ShownTypes<'_> {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self.0)
    }

    fn table(&self) -> Table {
        let row = |known: &KnownType| {
            let parameters = schema::parameters(&known.parameters);
            let parameters: Vec<_> = parameters.iter().map(|(name, _)| *name).collect();
            vec![
                known.name.clone(),
                made_by(known.plugin.as_ref()),
                known.summary.clone(),
                parameters.join(", "),
            ]
        };
        Table::Rows {
            heads: vec!["TYPE", "MADE BY", "WHAT IT IS", "PARAMETERS"],
            rows: self.0.iter().map(row).collect(),
        }
    }
}

impl Shown for ShownType<'_> {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self.0)
    }

    fn table(&self) -> Table {
        let Self(known) = self;
        let member = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let mut members = vec![
            member("type", &known.name),
            member("what it is", &known.summary),
            member("made by", &made_by(known.plugin.as_ref())),
        ];
        if let Some(plugin) = &known.plugin {
            members.push(member("digest", &plugin.digest));
        }
        members.push(member("value", &schema::described(&known.value)));
        for (name, text) in schema::parameters(&known.parameters) {
            members.push((format!("--param {name}"), text));
        }
        Table::Members(members)
    }
}

fn made_by(plugin: Option<&Plugin>) -> String {
    plugin.map_or_else(
        || "callers".to_owned(),
        |plugin| format!("{} {}", plugin.name, plugin.version),
    )
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "See which types there are",
        line: "keywright types",
        before: &[],
    },
    Example {
        does: "See by which parameters a certificate can be generated",
        line: "keywright types certificate --output table",
        before: &[],
    },
];
