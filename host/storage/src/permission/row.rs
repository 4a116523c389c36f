//! Decoding permissions.

use keywright_core::{
    permission::{Actor, Operations, Permission, PermissionPath},
    ports::RepositoryFailure,
};

use crate::row::{Row, column_at};

/// Decodes a permission from the columns of `select_permission` or `returning_permission`.
pub(crate) fn permission(row: &Row) -> Result<Permission, RepositoryFailure> {
    let bits: i64 = column_at!(row, 3, "permission", "operations")?;
    Ok(Permission {
        id: column_at!(row, 0, "permission", "id")?,
        path: PermissionPath::from_stored(column_at!(row, 1, "permission", "path")?),
        actor: Actor::from_stored(column_at!(row, 2, "permission", "actor")?),
        operations: u8::try_from(bits)
            .ok()
            .and_then(Operations::from_bits)
            .ok_or(RepositoryFailure::Inconsistent("permission.operations"))?,
    })
}
