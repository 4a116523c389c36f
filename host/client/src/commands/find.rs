//! `keywright find`.

use std::collections::BTreeMap;

use clap::Args;

use super::run::{CommandError, Completion, Context, Run, help};
use crate::{
    FoundCredential, input,
    output::{self, Table, printable},
};

/// Find credentials by path, name, expiry or origin
///
/// Without a path or a name, finds all credentials that you can read.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Find {
    /// Path below which to search.
    #[arg(long, value_name = "PATH", conflicts_with = "name_like")]
    path: Option<String>,
    /// Text that the name contains, ignoring case.
    #[arg(long, value_name = "TEXT")]
    name_like: Option<String>,
    /// Find credentials of any type that have expired, expire within this number of days, or should be rotated by then.
    #[arg(long, value_name = "DAYS", value_parser = input::number::<u32>)]
    expires_within_days: Option<u32>,
    /// Find only certificates, and check the whole chain: a certificate is unusable once any CA above it has expired.
    /// Requires `--expires-within-days`.
    #[arg(long, requires = "expires_within_days")]
    effective: bool,
    /// SHA-256 of the plugin component that generated the value, as shown by `types` and `sha256sum`.
    #[arg(long, value_name = "DIGEST", conflicts_with = "expires_within_days")]
    generated_by: Option<String>,
    /// Name of a credential from which the value was derived. The column STALE shows whether it was derived from a version that is not active.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["expires_within_days", "generated_by"])]
    derived_from: Option<String>,
    /// Print only the names, one per line.
    #[arg(long)]
    names: bool,
}

impl Run for Find {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let find = crate::Find {
            path: self.path.unwrap_or_default(),
            name_like: self.name_like,
            expires_within_days: self.expires_within_days,
            effective: self.effective,
            generated_by: self.generated_by,
            derived_from: self.derived_from,
        };
        let found = context.client()?.find_credentials(&find).await?;
        if self.names {
            let mut names = String::new();
            for found in &found {
                names.push_str(&printable(&found.name).replace('\n', "\\u{a}"));
                names.push('\n');
            }
            output::write_raw(names.as_bytes())?;
            return Ok(Completion::Full);
        }
        context.show(&BTreeMap::from([("credentials", &found)]), || {
            table(&find, &found)
        })
    }
}

fn table(find: &crate::Find, found: &[FoundCredential]) -> Table {
    let expires = find.expires_within_days.is_some();
    let rotates = found.iter().any(|one| one.rotation_date.is_some());
    let links = found.iter().any(|one| one.expiring_link.is_some());
    let imported = found.iter().any(|one| one.imported);
    let derived = find.derived_from.is_some();
    let yes_or_no = |is_true| if is_true { "yes" } else { "no" }.to_owned();
    let mut heads = vec!["NAME", "CREATED"];
    heads.extend(expires.then_some("EXPIRES"));
    heads.extend(rotates.then_some("ROTATE"));
    heads.extend(links.then_some("BECAUSE OF"));
    heads.extend(imported.then_some("IMPORTED"));
    heads.extend(derived.then_some("STALE"));
    let row = |one: &FoundCredential| {
        let mut row = vec![one.name.clone(), one.version_created_at.clone()];
        row.extend(expires.then(|| one.expiry_date.clone().unwrap_or_default()));
        row.extend(rotates.then(|| one.rotation_date.clone().unwrap_or_default()));
        let link = one.expiring_link.as_ref();
        row.extend(links.then(|| link.map(|link| link.name.clone()).unwrap_or_default()));
        row.extend(imported.then(|| yes_or_no(one.imported)));
        row.extend(derived.then(|| one.stale.map(yes_or_no).unwrap_or_default()));
        row
    };
    Table::Rows {
        rows: found.iter().map(row).collect(),
        heads,
    }
}

pub(super) const EXAMPLES: &str = "\
# Find everything below a path
keywright find --path /demo
# Find certificates that expire within 30 days, or whose CA does
keywright find --expires-within-days 30 --effective
# Find credentials that were derived from a credential
keywright find --derived-from /demo/password
# Read each credential whose name contains a text
keywright find --name-like pass --names | xargs -n 1 keywright get";
