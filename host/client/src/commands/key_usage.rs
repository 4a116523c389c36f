//! `keywright key-usage`.

use clap::Args;
use serde_json::value::{RawValue, to_raw_value};

use super::{Completion, Context, Example, Failure, Verb, help};
use crate::{
    KeyUsage as Usage,
    output::{Shown, Table},
};

/// Count versions by encryption key.
///
/// Counts the versions encrypted by the active key, by other keys of the server, and by keys that the server does not have.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct KeyUsage {}

impl Verb for KeyUsage {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let usage = context.client()?.key_usage().await?;
        context.output.show(&usage)?;
        Ok(Completion::Full)
    }
}

impl Shown for Usage {
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

pub(super) const EXAMPLES: &[Example] = &[Example {
    does: "Show the progress of an encryption key rotation",
    line: "keywright key-usage",
    before: &[],
}];
