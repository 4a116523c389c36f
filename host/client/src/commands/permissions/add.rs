//! `keywright permissions add`.

use clap::Args;

use super::Operations;
use crate::{
    AddPermission,
    commands::{Context, Example, Failure, Outcome, Verb, help},
};

/// Let an actor do something on one credential, or on everything below a path.
///
/// Permissions add up. Where the actor has one on this very path already, `permissions update` changes it.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Add {
    /// The name of one credential, which need not be there yet, or a path that ends in `/*`.
    path: String,
    /// Who may do it: `uaa-client:` and a client's id, `uaa-user:` and a user's id, or `mtls-app:` and an app's.
    #[arg(long)]
    actor: String,
    #[command(flatten)]
    operations: Operations,
}

impl Verb for Add {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let new = AddPermission {
            path: self.path,
            actor: self.actor,
            operations: self.operations.operations,
        };
        let added = context.client()?.add_permission(&new).await;
        let permission = added.map_err(|error| match error.status() {
            Some(CONFLICT) => Failure::Other(format!(
                "{error}; `permissions update` replaces what it allows"
            )),
            _ => error.into(),
        })?;
        context.output.show(&permission)?;
        Ok(Outcome::Done)
    }
}

/// The status that says that the actor has a permission on that path.
const CONFLICT: u16 = 409;

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Let an app read everything below a path",
        line: "keywright permissions add '/demo/*' --actor uaa-client:app --operations read",
        before: &[],
    },
    Example {
        does: "Let a user look after one credential and its permissions",
        line: "keywright permissions add /demo/database --actor uaa-user:3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b11 --operations read,write,delete,read_acl,write_acl",
        before: &[],
    },
];
