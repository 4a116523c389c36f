//! `keywright management`.

use clap::{Args, ValueEnum};
use serde_json::value::{RawValue, to_raw_value};

use super::{Completion, Context, Example, Failure, Verb, help};
use crate::{
    ServerMode,
    output::{Shown, Table},
};

/// Show or switch the server's read-only mode.
///
/// The mode applies only to the server that handles the request, and is off after a start. The server's configuration lists who
/// may switch it.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
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

impl Verb for Management {
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

impl Shown for ServerMode {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let mode = if self.read_only_mode { "on" } else { "off" };
        Table::Fields(vec![("read-only mode".to_owned(), mode.to_owned())])
    }
}

pub(super) const EXAMPLES: &[Example] = &[
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
