//! `keywright permissions`: the commands of permissions.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::run::{CommandError, Completion, Context, Run, help};
use crate::{
    AddPermission, Client, Operation, Permission,
    output::{self, Table, field},
};

/// Manage the permissions of actors on paths.
#[derive(Debug, Args)]
pub struct Permissions {
    #[command(subcommand)]
    command: PermissionsCommand,
}

#[derive(Debug, Subcommand)]
enum PermissionsCommand {
    /// Add a permission on a credential or a path
    ///
    /// Permissions add up. If the actor already has a permission on exactly this path, change it with `permissions update`.
    #[command(after_help = help(ADD_EXAMPLES))]
    Add {
        /// Name of a credential, which need not exist yet, or a path that ends in `/*`.
        path: String,
        /// Actor to permit: `uaa-client:` and a client id, `uaa-user:` and a user id, or `mtls-app:` and an app id.
        #[arg(long)]
        actor: String,
        /// Operations that the actor may perform, separated by commas.
        #[arg(long, value_enum, value_delimiter = ',', required = true)]
        operations: Vec<Operation>,
    },
    /// Delete a permission and show it.
    #[command(after_help = help(DELETE_EXAMPLES))]
    Delete(Selection),
    /// Show a permission.
    #[command(after_help = help(GET_EXAMPLES))]
    Get(Selection),
    /// Replace the operations of a permission.
    #[command(after_help = help(UPDATE_EXAMPLES))]
    Update {
        #[command(flatten)]
        selection: Selection,
        /// Operations that the actor may perform, separated by commas.
        #[arg(long, value_enum, value_delimiter = ',', required = true)]
        operations: Vec<Operation>,
    },
}

impl Run for Permissions {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let client = context.client()?;
        let permission = match self.command {
            PermissionsCommand::Add {
                path,
                actor,
                operations,
            } => {
                let new = AddPermission {
                    path,
                    actor,
                    operations,
                };
                add(&client, &new).await?
            }
            PermissionsCommand::Delete(selection) => {
                let id = selection.id(&client).await?;
                client.delete_permission(&id).await?
            }
            PermissionsCommand::Get(selection) => selection.permission(&client).await?,
            PermissionsCommand::Update {
                selection,
                operations,
            } => {
                let id = selection.id(&client).await?;
                client.amend_permission(&id, &operations).await?
            }
        };
        context.show(&permission, || table(&permission))
    }
}

async fn add(client: &Client, new: &AddPermission) -> Result<Permission, CommandError> {
    let added = client.add_permission(new).await;
    let permission = added.map_err(|error| match error.status() {
        Some(CONFLICT) => CommandError::Other(ALREADY_PERMITTED.to_owned()),
        _ => error.into(),
    })?;
    let mut kinds = ACTOR_KINDS.iter();
    if !kinds.any(|kind| permission.actor.starts_with(kind)) {
        output::note(&format!(
            "warning: no caller can be the actor {}; actors start with {}",
            permission.actor,
            ACTOR_KINDS.join(", ")
        ));
    }
    Ok(permission)
}

/// The permission to select.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("selection").required(true).args(["path", "id"]))]
struct Selection {
    /// Path of the permission: a credential's name, or a path that ends in `/*`.
    #[arg(requires = "actor")]
    path: Option<String>,
    /// Actor of the permission, such as `uaa-client:app`.
    #[arg(long, conflicts_with = "id")]
    actor: Option<String>,
    /// Id of the permission, instead of its path and actor.
    #[arg(long)]
    id: Option<String>,
}

impl Selection {
    async fn permission(&self, client: &Client) -> Result<Permission, CommandError> {
        let path = self.path.as_deref().unwrap_or_default();
        let actor = self.actor.as_deref().unwrap_or_default();
        Ok(match &self.id {
            Some(id) => client.permission_by_id(id).await?,
            None => client.permission_on(path, actor).await?,
        })
    }

    /// Returns the id of the selected permission.
    async fn id(self, client: &Client) -> Result<String, CommandError> {
        match self.id {
            Some(id) => Ok(id),
            None => self.permission(client).await.map(|found| found.uuid),
        }
    }
}

fn table(permission: &Permission) -> Table {
    let operations = permission.operations.iter();
    let operations: Vec<_> = operations
        .filter_map(ValueEnum::to_possible_value)
        .map(|operation| operation.get_name().to_owned())
        .collect();
    Table::Fields(vec![
        field("id", &permission.uuid),
        field("path", &permission.path),
        field("actor", &permission.actor),
        field("operations", operations.join(", ")),
    ])
}

pub(super) const EXAMPLES: [(&str, &str); 4] = [
    ("permissions add", ADD_EXAMPLES),
    ("permissions delete", DELETE_EXAMPLES),
    ("permissions get", GET_EXAMPLES),
    ("permissions update", UPDATE_EXAMPLES),
];

/// The first parts of the actors that callers can be.
const ACTOR_KINDS: [&str; 3] = ["uaa-client:", "uaa-user:", "mtls-app:"];

/// The status if the actor already has a permission on the path.
const CONFLICT: u16 = 409;

const ALREADY_PERMITTED: &str = "the actor already has a permission on this path; use `permissions update` to change its operations";

const ADD_EXAMPLES: &str = "\
# Let an app read everything below a path
keywright permissions add '/demo/*' --actor uaa-client:app --operations read
# Let a user manage one credential and its permissions
keywright permissions add /demo/database --actor uaa-user:3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b11 --operations read,write,delete,read_acl,write_acl";

const DELETE_EXAMPLES: &str = "\
# Delete an app's permission on a path
$ keywright permissions add '/demo/*' --actor uaa-client:old-app --operations read
keywright permissions delete '/demo/*' --actor uaa-client:old-app";

const GET_EXAMPLES: &str = "\
# Show an app's permission on a path
$ keywright permissions add '/demo/*' --actor uaa-client:web-app --operations read
keywright permissions get '/demo/*' --actor uaa-client:web-app";

const UPDATE_EXAMPLES: &str = "\
# Let an app read and write everything below a path
$ keywright permissions add '/demo/*' --actor uaa-client:batch-app --operations read
keywright permissions update '/demo/*' --actor uaa-client:batch-app --operations read,write";
