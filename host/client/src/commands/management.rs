//! `keywright management`.

use clap::{Args, ValueEnum};
use serde_json::value::{RawValue, to_raw_value};

use super::{Context, Example, Failure, Outcome, Verb, help};
use crate::{
    ServerMode,
    output::{Shown, Table},
};

/// Show whether the server takes writes, or switch its read-only mode.
///
/// The mode is a matter of the one server that answers, and is off when it starts. Who may manage a server is a matter of its
/// configuration.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Management {
    /// Switch read-only mode.
    #[arg(long, value_enum, value_name = "MODE")]
    read_only: Option<Switch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Nothing can be changed.
    On,
    /// The server takes writes again.
    Off,
}

impl Verb for Management {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let mode = match self.read_only {
            Some(switch) => client.switch_read_only_mode(switch == Switch::On).await?,
            None => client.server_mode().await?,
        };
        context.output.show(&mode)?;
        Ok(Outcome::Done)
    }
}

impl Shown for ServerMode {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let mode = if self.read_only_mode { "on" } else { "off" };
        Table::Members(vec![("read-only mode".to_owned(), mode.to_owned())])
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "See whether the server takes writes",
        line: "keywright management",
        before: &[],
    },
    Example {
        does: "Take writes again",
        line: "keywright management --read-only off",
        before: &["keywright management --read-only on"],
    },
];
