//! `keywright find`.

use clap::Args;

use super::{Context, Example, Failure, Outcome, Verb, help, shown::ShownFound};
use crate::output::{Output, printable};

/// Find credentials by a path or by a part of their names. Without either, all that you may read are found.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Find {
    /// Find what is below this path.
    #[arg(long, value_name = "PATH", conflicts_with = "name_like")]
    path: Option<String>,
    /// Find names that hold this text, in whatever case.
    #[arg(long, value_name = "TEXT")]
    name_like: Option<String>,
    /// Find credentials with a certificate, whatever their type, that expires within so many days, or has.
    #[arg(long, value_name = "DAYS")]
    expires_within_days: Option<u32>,
    /// Look at what signed a certificate too: it is of no use any more when anything above it has expired.
    #[arg(long, requires = "expires_within_days")]
    effective: bool,
    /// Find what a plugin made: the SHA-256 of its component, as `types` and `sha256sum` show it.
    #[arg(long, value_name = "DIGEST", conflicts_with = "expires_within_days")]
    generated_by: Option<String>,
    /// Write nothing but the names, one a line.
    #[arg(long)]
    names: bool,
}

impl Verb for Find {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
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
        Ok(Outcome::Done)
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Find everything below a path",
        line: "keywright find --path /demo",
        before: &[],
    },
    Example {
        does: "Find the certificates that expire within 30 days, or what signed them",
        line: "keywright find --expires-within-days 30 --effective",
        before: &[],
    },
    Example {
        does: "Read each credential whose name holds a text",
        line: "keywright find --name-like pass --names | xargs -n 1 keywright get",
        before: &[],
    },
];
