//! `keywright permissions add`.

use clap::Args;

use super::Operations;
use crate::{
    AddPermission,
    commands::{Completion, Context, Example, Failure, Verb, help},
};

/// Add a permission on a credential or a path.
///
/// Permissions add up. If the actor already has a permission on exactly this path, change it with `permissions update`.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Add {
    /// Name of a credential, which need not exist yet, or a path that ends in `/*`.
    path: String,
    /// Actor to permit: `uaa-client:` and a client id, `uaa-user:` and a user id, or `mtls-app:` and an app id.
    #[arg(long)]
    actor: String,
    #[command(flatten)]
    operations: Operations,
}

impl Verb for Add {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let new = AddPermission {
            path: self.path,
            actor: self.actor,
            operations: self.operations.operations,
        };
        let added = context.client()?.add_permission(&new).await;
        let permission = added.map_err(|error| match error.status() {
            Some(CONFLICT) => {
                Failure::Other(format!("{error}; use `permissions update` to change it"))
            }
            _ => error.into(),
        })?;
        context.output.show(&permission)?;
        Ok(Completion::Full)
    }
}

/// The status if the actor already has a permission on the path.
const CONFLICT: u16 = 409;

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Let an app read everything below a path",
        line: "keywright permissions add '/demo/*' --actor uaa-client:app --operations read",
        before: &[],
    },
    Example {
        does: "Let a user manage one credential and its permissions",
        line: "keywright permissions add /demo/database --actor uaa-user:3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b11 --operations read,write,delete,read_acl,write_acl",
        before: &[],
    },
];
