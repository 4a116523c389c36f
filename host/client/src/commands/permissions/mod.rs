//! `keywright permissions`: the verbs of permissions, one file each.

mod add;
mod delete;
mod get;
mod update;

use clap::{Args, Subcommand};
use serde_json::value::{RawValue, to_raw_value};

use super::{Context, Failure, Outcome, Verb, VerbExamples};
use crate::{
    Client, Operation, Permission,
    output::{Shown, Table},
};

/// Work with permissions: which actor may do what on which path.
#[derive(Debug, Args)]
pub struct Permissions {
    #[command(subcommand)]
    verb: PermissionsVerb,
}

#[derive(Debug, Subcommand)]
enum PermissionsVerb {
    /// Let an actor do something.
    Add(add::Add),
    /// Take a permission away.
    Delete(delete::Delete),
    /// Show a permission.
    Get(get::Get),
    /// Replace the operations of a permission.
    Update(update::Update),
}

impl Verb for Permissions {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        match self.verb {
            PermissionsVerb::Add(verb) => verb.run(context).await,
            PermissionsVerb::Delete(verb) => verb.run(context).await,
            PermissionsVerb::Get(verb) => verb.run(context).await,
            PermissionsVerb::Update(verb) => verb.run(context).await,
        }
    }
}

/// Which permission.
#[derive(Debug, Args)]
struct Selection {
    /// The path that the permission stands on: a credential's name, or a path that ends in `/*`.
    #[arg(
        required_unless_present = "id",
        conflicts_with = "id",
        requires = "actor"
    )]
    path: Option<String>,
    /// The actor whose permission it is, such as `uaa-client:app`.
    #[arg(long, conflicts_with = "id")]
    actor: Option<String>,
    /// The permission's id, instead of its path and its actor.
    #[arg(long)]
    id: Option<String>,
}

impl Selection {
    /// The permission that is selected.
    async fn permission(&self, client: &Client) -> Result<Permission, Failure> {
        let path = self.path.as_deref().unwrap_or_default();
        let actor = self.actor.as_deref().unwrap_or_default();
        Ok(match &self.id {
            Some(id) => client.permission_by_id(id).await?,
            None => client.permission_on(path, actor).await?,
        })
    }

    /// The id of the permission that is selected.
    async fn id(self, client: &Client) -> Result<String, Failure> {
        match self.id {
            Some(id) => Ok(id),
            None => self.permission(client).await.map(|found| found.uuid),
        }
    }
}

/// What may be done.
#[derive(Debug, Args)]
struct Operations {
    /// What the actor may do there, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    operations: Vec<Operation>,
}

impl Shown for Permission {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let operations: Vec<_> = self.operations.iter().map(|one| one.name()).collect();
        let member = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        Table::Members(vec![
            member("id", &self.uuid),
            member("path", &self.path),
            member("actor", &self.actor),
            member("operations", &operations.join(", ")),
        ])
    }
}

/// The examples of the verbs.
pub(super) const EXAMPLES: [VerbExamples; 4] = [
    VerbExamples::new("permissions add", add::EXAMPLES),
    VerbExamples::new("permissions delete", delete::EXAMPLES),
    VerbExamples::new("permissions get", get::EXAMPLES),
    VerbExamples::new("permissions update", update::EXAMPLES),
];
