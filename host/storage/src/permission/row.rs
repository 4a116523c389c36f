//! Reading a permission.

use keywright_core::{
    permission::{Actor, Operations, Permission, PermissionPath},
    ports::RepositoryFailure,
};
use sqlx::sqlite::SqliteRow;

use crate::failure::column;

/// A permission of a row with the columns of `select_permission` or `returning_permission`.
pub(super) fn permission(row: &SqliteRow) -> Result<Permission, RepositoryFailure> {
    let bits: u8 = column!(row, "permission", "operations")?;
    Ok(Permission {
        id: column!(row, "permission", "id")?,
        path: PermissionPath::from_stored(column!(row, "permission", "path")?),
        actor: Actor::from_stored(column!(row, "permission", "actor")?),
        operations: Operations::from_bits(bits)
            .ok_or(RepositoryFailure::Inconsistent("permission.operations"))?,
    })
}
