//! `keywright bulk-regenerate`.

use clap::Args;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{Context, Example, Failure, Outcome, Verb, help};
use crate::output::{self, Shown, Table};

/// Regenerate all certificates that an authority signed, and what those signed: all of them or, where one can't be, none.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct BulkRegenerate {
    /// The authority's name.
    authority: String,
}

impl Verb for BulkRegenerate {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let names = context.client()?.bulk_regenerate(&self.authority).await?;
        if names.is_empty() {
            output::note(&format!("{} signed nothing", self.authority));
        }
        context.output.show(&Regenerated {
            regenerated_credentials: names,
        })?;
        Ok(Outcome::Done)
    }
}

/// As the API has it.
#[derive(Serialize)]
struct Regenerated {
    regenerated_credentials: Vec<String>,
}

impl Shown for Regenerated {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let names = self.regenerated_credentials.iter();
        Table::Rows {
            heads: vec!["REGENERATED"],
            rows: names.map(|name| vec![name.clone()]).collect(),
        }
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[Example {
    does: "Have everything below an authority signed anew",
    line: "keywright bulk-regenerate /demo/root",
    before: super::certificates::AUTHORITY_AND_LEAF,
}];
