//! `keywright permissions`: the verbs of permissions, one file each.

mod add;
mod delete;
mod get;
mod update;

use clap::{Args, Subcommand};
use serde_json::value::{RawValue, to_raw_value};

use super::{Completion, Context, Failure, Verb, VerbExamples};
use crate::{
    Client, Operation, Permission,
    output::{Shown, Table},
};

/// Manage the permissions of actors on paths.
#[derive(Debug, Args)]
pub struct Permissions {
    #[command(subcommand)]
    verb: PermissionsVerb,
}

#[derive(Debug, Subcommand)]
enum PermissionsVerb {
    Add(add::Add),
    Delete(delete::Delete),
    Get(get::Get),
    Update(update::Update),
}

impl Verb for Permissions {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        match self.verb {
            PermissionsVerb::Add(verb) => verb.run(context).await,
            PermissionsVerb::Delete(verb) => verb.run(context).await,
            PermissionsVerb::Get(verb) => verb.run(context).await,
            PermissionsVerb::Update(verb) => verb.run(context).await,
        }
    }
}

/// The permission to select.
#[derive(Debug, Args)]
struct Selection {
    /// Path of the permission: a credential's name, or a path that ends in `/*`.
    #[arg(
        required_unless_present = "id",
        conflicts_with = "id",
        requires = "actor"
    )]
    path: Option<String>,
    /// Actor of the permission, such as `uaa-client:app`.
    #[arg(long, conflicts_with = "id")]
    actor: Option<String>,
    /// Id of the permission, instead of its path and actor.
    #[arg(long)]
    id: Option<String>,
}

impl Selection {
    /// Returns the selected permission.
    async fn permission(&self, client: &Client) -> Result<Permission, Failure> {
        let path = self.path.as_deref().unwrap_or_default();
        let actor = self.actor.as_deref().unwrap_or_default();
        Ok(match &self.id {
            Some(id) => client.permission_by_id(id).await?,
            None => client.permission_on(path, actor).await?,
        })
    }

    /// Returns the id of the selected permission.
    async fn id(self, client: &Client) -> Result<String, Failure> {
        match self.id {
            Some(id) => Ok(id),
            None => self.permission(client).await.map(|found| found.uuid),
        }
    }
}

/// The operations that a permission allows.
#[derive(Debug, Args)]
struct Operations {
    /// Operations that the actor may perform, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    operations: Vec<Operation>,
}

impl Shown for Permission {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let operations: Vec<_> = self.operations.iter().map(|one| one.name()).collect();
        let field = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        Table::Fields(vec![
            field("id", &self.uuid),
            field("path", &self.path),
            field("actor", &self.actor),
            field("operations", &operations.join(", ")),
        ])
    }
}

pub(super) const EXAMPLES: [VerbExamples; 4] = [
    VerbExamples::new("permissions add", add::EXAMPLES),
    VerbExamples::new("permissions delete", delete::EXAMPLES),
    VerbExamples::new("permissions get", get::EXAMPLES),
    VerbExamples::new("permissions update", update::EXAMPLES),
];
