//! `keywright bulk-regenerate`.

use clap::{ArgGroup, Args};
use serde::Serialize;

use super::run::{CommandError, Completion, Context, Run, help};
use crate::{
    BulkRegenerated, FailedCredential, input,
    output::{self, Table},
};

/// Regenerate all credentials of a CA, plugin or input
///
/// With a CA, regenerates all credentials that it signed, directly or through other CAs. With `--generated-by`, regenerates all
/// credentials that the plugin generated. With `--derived-from`, regenerates all credentials that were derived from an older
/// version of a credential. If one of the credentials can't be regenerated, nothing changes.
///
/// Every caller who may read a regenerated credential can read its new value. Review the credentials with `--dry-run` first, and
/// narrow the selection with `--path`.
///
/// With `--keep-going`, skips credentials that can't be regenerated, regenerates the others together, reports each failure, and
/// exits with status 3 if one failed. If a CA fails, the credentials that it signs fail, too.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
#[command(group = ArgGroup::new("selection").required(true).args(["authority", "generated_by", "derived_from"]))]
pub struct BulkRegenerate {
    /// Name of the CA.
    #[arg(value_name = "CA")]
    authority: Option<String>,
    /// SHA-256 of a plugin's component, as shown by `types` and `sha256sum`.
    #[arg(long, value_name = "DIGEST")]
    generated_by: Option<String>,
    /// Name of a credential that was rotated.
    #[arg(long, value_name = "NAME")]
    derived_from: Option<String>,
    /// Path below which to regenerate credentials. Default: all.
    #[arg(long, value_name = "PATH", value_parser = input::path)]
    path: Option<String>,
    /// Check and list the credentials without regenerating them.
    #[arg(long)]
    dry_run: bool,
    /// Regenerate the other credentials if some can't be regenerated.
    #[arg(long)]
    keep_going: bool,
}

impl Run for BulkRegenerate {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let result = context.client()?.regenerate_all(&self.request()).await?;
        let failed = result.failed_credentials.as_deref().unwrap_or_default();
        if result.regenerated_credentials.is_empty() && failed.is_empty() {
            output::note(&self.none_found());
        }
        for FailedCredential { name, error, .. } in failed {
            output::note(&format!("failed: {name}: {error}"));
        }
        let dry_run = self.dry_run;
        let head = if dry_run {
            "TO BE REGENERATED"
        } else {
            "REGENERATED"
        };
        let names = &result.regenerated_credentials;
        let shown = Regenerated {
            result: &result,
            dry_run,
        };
        context.output.show(&shown, || match names.as_slice() {
            [] => Table::Fields(Vec::new()),
            names => Table::Rows {
                heads: vec![head],
                rows: names.iter().map(|name| vec![name.clone()]).collect(),
            },
        })?;
        Ok(Completion::full_if(failed.is_empty()))
    }
}

impl BulkRegenerate {
    fn request(&self) -> crate::BulkRegenerate {
        crate::BulkRegenerate {
            signed_by: self.authority.clone(),
            generated_by: self.generated_by.clone(),
            derived_from: self.derived_from.clone(),
            path: self.path.clone(),
            dry_run: self.dry_run,
            keep_going: self.keep_going,
        }
    }

    fn none_found(&self) -> String {
        let below = self.path.as_ref().map(|path| format!(" below {path}"));
        let below = below.unwrap_or_default();
        match (&self.derived_from, &self.authority) {
            (Some(input), _) => {
                format!("No credentials{below} are derived from an older version of {input}.")
            }
            (None, Some(authority)) => format!("No credentials{below} are signed by {authority}."),
            (None, None) => format!("The plugin generated no credentials{below}."),
        }
    }
}

/// The response of the API.
#[derive(Serialize)]
struct Regenerated<'a> {
    #[serde(flatten)]
    result: &'a BulkRegenerated,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

pub(super) const EXAMPLES: &str = "\
$ keywright generate /demo/root --type certificate --common-name root --is-ca
$ keywright generate /demo/web --type certificate --common-name web --ca /demo/root
# Regenerate everything below a CA
keywright bulk-regenerate /demo/root
# Check everything below a CA without regenerating it
keywright bulk-regenerate /demo/root --dry-run --keep-going
# Regenerate all credentials that were derived from an older version
keywright bulk-regenerate --derived-from /demo/password
# List the credentials of a plugin that was replaced
keywright bulk-regenerate --dry-run --generated-by sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
