//! The commands for operators: `keywright key-usage` and `keywright management`.

use clap::{Args, ValueEnum};

use super::run::{CommandError, Completion, Context, Run, help};
use crate::output::{Table, field};

/// Count versions by encryption key
///
/// Counts the versions encrypted by the active key, by other keys of the server, and by keys that the server does not have.
#[derive(Debug, Args)]
#[command(after_help = help(KEY_USAGE_EXAMPLES))]
pub struct KeyUsage {}

impl Run for KeyUsage {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let usage = context.client()?.key_usage().await?;
        context.show(&usage, || {
            Table::Fields(vec![
                field("active key", usage.active_key.to_string()),
                field("inactive keys", usage.inactive_keys.to_string()),
                field("unknown keys", usage.unknown_keys.to_string()),
            ])
        })
    }
}

/// Show or switch the server's read-only mode
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
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let client = context.client()?;
        let mode = match self.read_only {
            Some(switch) => client.switch_read_only_mode(switch == Switch::On).await?,
            None => client.server_mode().await?,
        };
        context.show(&mode, || {
            let shown = if mode.read_only_mode { "on" } else { "off" };
            Table::Fields(vec![field("read-only mode", shown)])
        })
    }
}

pub(super) const KEY_USAGE_EXAMPLES: &str = "\
# Show the progress of an encryption key rotation
keywright key-usage";

pub(super) const MANAGEMENT_EXAMPLES: &str = "\
# Show whether the server accepts writes
keywright management
# Accept writes again
$ keywright management --read-only on
keywright management --read-only off";
