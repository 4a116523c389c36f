//! `keywright bulk-regenerate`.

use clap::Args;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::verb::{AUTHORITY_AND_LEAF, Completion, Context, Example, Failure, Verb, help};
use crate::output::{self, Render, Table};

/// Regenerate all credentials of a CA or a plugin.
///
/// With a CA, regenerates all credentials that it signed, directly or through other CAs. With `--generated-by`, regenerates all
/// credentials that the plugin generated. If one of the credentials can't be regenerated, nothing changes.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct BulkRegenerate {
    /// Name of the CA.
    #[arg(value_name = "CA", required_unless_present = "generated_by")]
    authority: Option<String>,
    /// SHA-256 of a plugin's component, as shown by `types` and `sha256sum`.
    #[arg(long, value_name = "DIGEST", conflicts_with = "authority")]
    generated_by: Option<String>,
    /// Path below which to regenerate the plugin's credentials. Default: all.
    #[arg(long, value_name = "PATH", conflicts_with = "authority")]
    path: Option<String>,
    /// Only list the credentials to regenerate.
    #[arg(long)]
    dry_run: bool,
}

impl Verb for BulkRegenerate {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let names = context.client()?.regenerate_all(&self.request()).await?;
        if names.is_empty() {
            output::note(&self.none_found());
        }
        context.output.show(&Regenerated {
            regenerated_credentials: names,
            dry_run: self.dry_run,
        })?;
        Ok(Completion::Full)
    }
}

impl BulkRegenerate {
    fn request(&self) -> crate::BulkRegenerate {
        let mut request = match (&self.generated_by, &self.authority) {
            (Some(digest), _) => crate::BulkRegenerate::generated_by(digest),
            (None, authority) => {
                crate::BulkRegenerate::signed_by(authority.clone().unwrap_or_default())
            }
        };
        if let Some(path) = &self.path {
            request = request.below(path);
        }
        if self.dry_run {
            request = request.dry_run();
        }
        request
    }

    fn none_found(&self) -> String {
        match (&self.authority, &self.path) {
            (Some(authority), _) => format!("The CA {authority} signed no credentials."),
            (None, Some(path)) => {
                format!("The plugin generated no credentials below {path}.")
            }
            (None, None) => "The plugin generated no credentials.".to_owned(),
        }
    }
}

/// The response of the API.
#[derive(Serialize)]
struct Regenerated {
    regenerated_credentials: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

impl Render for Regenerated {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let head = if self.dry_run {
            "TO BE REGENERATED"
        } else {
            "REGENERATED"
        };
        let names = self.regenerated_credentials.iter();
        Table::Rows {
            heads: vec![head],
            rows: names.map(|name| vec![name.clone()]).collect(),
        }
    }
}

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Regenerate everything below a CA",
        line: "keywright bulk-regenerate /demo/root",
        before: AUTHORITY_AND_LEAF,
    },
    Example {
        does: "List the credentials that a plugin generated",
        line: "keywright bulk-regenerate --dry-run --generated-by sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        before: &[],
    },
];
