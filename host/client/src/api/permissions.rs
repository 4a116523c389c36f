//! Permissions: `/api/v2/permissions`.

use clap::ValueEnum;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::credentials::segment;
use crate::{Client, Error, client::Call};

/// The operations that an actor may perform on a path.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Permission {
    /// The permission's id.
    pub uuid: String,
    /// The name of one credential, or a path that ends in `/*`.
    pub path: String,
    /// The permitted actor.
    pub actor: String,
    /// The permitted operations.
    pub operations: Vec<Operation>,
}

/// An operation that a permission allows.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Operation {
    /// Read and find credentials.
    Read,
    /// Set, generate and regenerate credentials.
    Write,
    /// Delete credentials.
    Delete,
    /// Read the permissions themselves.
    ReadAcl,
    /// Add, change and delete the permissions themselves.
    WriteAcl,
}

/// A permission to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AddPermission {
    /// The name of one credential, or a path that ends in `/*`.
    pub path: String,
    /// The permitted actor.
    pub actor: String,
    /// The permitted operations.
    pub operations: Vec<Operation>,
}

impl Client {
    /// Returns the actor's permission on exactly this path, regardless of permissions on enclosing paths.
    pub async fn permission_on(&self, path: &str, actor: &str) -> Result<Permission, Error> {
        let call = Call::new(Method::GET, PERMISSIONS)
            .query("path", path)
            .query("actor", actor);
        self.execute(&call).await
    }

    /// Returns the permission with this id.
    pub async fn permission_by_id(&self, uuid: &str) -> Result<Permission, Error> {
        self.execute(&Call::new(Method::GET, permission_path(uuid)))
            .await
    }

    /// Adds a permission.
    pub async fn add_permission(&self, permission: &AddPermission) -> Result<Permission, Error> {
        self.execute(&Call::new(Method::POST, PERMISSIONS).body(permission)?)
            .await
    }

    /// Replaces the operations of a permission.
    pub async fn amend_permission(
        &self,
        uuid: &str,
        operations: &[Operation],
    ) -> Result<Permission, Error> {
        let body = json!({"operations": operations});
        self.execute(&Call::new(Method::PATCH, permission_path(uuid)).body(&body)?)
            .await
    }

    /// Deletes a permission and returns it.
    pub async fn delete_permission(&self, uuid: &str) -> Result<Permission, Error> {
        self.execute(&Call::new(Method::DELETE, permission_path(uuid)))
            .await
    }
}

fn permission_path(uuid: &str) -> String {
    format!("{PERMISSIONS}/{}", segment(uuid))
}

const PERMISSIONS: &str = "/api/v2/permissions";
