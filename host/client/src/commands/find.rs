//! `keywright find`.

use clap::Args;

use super::{Completion, Context, Example, Failure, Verb, help, shown::ShownFound};
use crate::output::{Output, printable};

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
    /// SHA-256 of the component of the plugin that generated the value, as shown by `types` and `sha256sum`.
    #[arg(long, value_name = "DIGEST", conflicts_with = "expires_within_days")]
    generated_by: Option<String>,
    /// Print only the names, one per line.
    #[arg(long)]
    names: bool,
}

impl Verb for Find {
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
            context.output.show(&ShownFound(&found))?;
        }
        Ok(Completion::Full)
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
