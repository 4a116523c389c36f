//! `keywright find`.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::value::{RawValue, to_raw_value};

use super::run::{Completion, Context, Example, Failure, Run, help};
use crate::{
    FoundCredential,
    output::{Output, Render, Table, printable},
};

/// Find credentials by path, name, expiry or plugin.
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
    /// Find credentials of any type whose certificate has expired or expires within this number of days.
    #[arg(long, value_name = "DAYS")]
    expires_within_days: Option<u32>,
    /// Check the whole chain: a certificate is unusable once any CA above it has expired.
    #[arg(long, requires = "expires_within_days")]
    effective: bool,
    /// SHA-256 of the plugin component that generated the value, as shown by `types` and `sha256sum`.
    #[arg(long, value_name = "DIGEST", conflicts_with = "expires_within_days")]
    generated_by: Option<String>,
    /// Print only the names, one per line.
    #[arg(long)]
    names: bool,
}

impl Run for Find {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let mut find = match (self.path, self.name_like) {
            (Some(path), _) => crate::Find::below(path),
            (None, Some(text)) => crate::Find::name_like(text),
            (None, None) => crate::Find::default(),
        };
        if let Some(days) = self.expires_within_days {
            find = find.expires_within_days(days);
        }
        if self.effective {
            find = find.effective();
        }
        if let Some(digest) = self.generated_by {
            find = find.generated_by(digest);
        }
        let found = context.client()?.find_credentials(&find).await?;
        if self.names {
            let mut names = String::new();
            for found in &found {
                names.push_str(&printable(&found.name));
                names.push('\n');
            }
            Output::write_raw(names.as_bytes())?;
        } else {
            context.output.show(found.as_slice())?;
        }
        Ok(Completion::Full)
    }
}

impl Render for [FoundCredential] {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(&BTreeMap::from([("credentials", self)]))
    }

    fn table(&self) -> Table {
        let expires = self.iter().any(|found| found.expiry_date.is_some());
        let links = self.iter().any(|found| found.expiring_link.is_some());
        let imported = self.iter().any(|found| found.imported);
        let mut heads = vec!["NAME", "CREATED"];
        heads.extend(expires.then_some("EXPIRES"));
        heads.extend(links.then_some("BECAUSE OF"));
        heads.extend(imported.then_some("IMPORTED"));
        let row = |found: &FoundCredential| {
            let mut row = vec![found.name.clone(), found.version_created_at.clone()];
            if expires {
                row.push(found.expiry_date.clone().unwrap_or_default());
            }
            if links {
                let link = found.expiring_link.as_ref();
                row.push(link.map(|link| link.name.clone()).unwrap_or_default());
            }
            if imported {
                row.push(if found.imported { "yes" } else { "no" }.to_owned());
            }
            row
        };
        Table::Rows {
            rows: self.iter().map(row).collect(),
            heads,
        }
    }
}

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Find everything below a path",
        line: "keywright find --path /demo",
        before: &[],
    },
    Example {
        does: "Find certificates that expire within 30 days, or whose CA does",
        line: "keywright find --expires-within-days 30 --effective",
        before: &[],
    },
    Example {
        does: "Read each credential whose name contains a text",
        line: "keywright find --name-like pass --names | xargs -n 1 keywright get",
        before: &[],
    },
];
