//! The commands for operators: `keywright key-usage` and `keywright management`.

use clap::{Args, ValueEnum};
use serde_json::value::{RawValue, to_raw_value};

use super::run::{Completion, Context, Example, Failure, Run, help};
use crate::{
    ServerMode,
    output::{Render, Table},
};

/// Count versions by encryption key.
///
/// Counts the versions encrypted by the active key, by other keys of the server, and by keys that the server does not have.
#[derive(Debug, Args)]
#[command(after_help = help(KEY_USAGE_EXAMPLES))]
pub struct KeyUsage {}

impl Run for KeyUsage {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let usage = context.client()?.key_usage().await?;
        context.output.show(&usage)?;
        Ok(Completion::Full)
    }
}

impl Render for crate::KeyUsage {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let fields = [
            ("active key", self.active_key),
            ("inactive keys", self.inactive_keys),
            ("unknown keys", self.unknown_keys),
        ];
        let field = |(name, count): (&str, u64)| (name.to_owned(), count.to_string());
        Table::Fields(fields.into_iter().map(field).collect())
    }
}

/// Show or switch the server's read-only mode.
///
/// The mode applies only to the server that handles the request, and is off when that server starts. The server's configuration
/// lists the actors that may switch it.
#[derive(Debug, Args)]
#[command(after_help = help(MANAGEMENT_EXAMPLES))]
pub struct Management {
    /// New read-only mode.
    #[arg(long, value_enum, value_name = "MODE")]
    read_only: Option<Switch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Refuse writes.
    On,
    /// Accept writes.
    Off,
}

impl Run for Management {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let mode = match self.read_only {
            Some(switch) => client.switch_read_only_mode(switch == Switch::On).await?,
            None => client.server_mode().await?,
        };
        context.output.show(&mode)?;
        Ok(Completion::Full)
    }
}

impl Render for ServerMode {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let mode = if self.read_only_mode { "on" } else { "off" };
        Table::Fields(vec![("read-only mode".to_owned(), mode.to_owned())])
    }
}

pub(super) const KEY_USAGE_EXAMPLES: &[Example] = &[Example {
    does: "Show the progress of an encryption key rotation",
    line: "keywright key-usage",
    before: &[],
}];

pub(super) const MANAGEMENT_EXAMPLES: &[Example] = &[
    Example {
        does: "Show whether the server accepts writes",
        line: "keywright management",
        before: &[],
    },
    Example {
        does: "Accept writes again",
        line: "keywright management --read-only off",
        before: &["keywright management --read-only on"],
    },
];
