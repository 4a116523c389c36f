//! Decoding permissions.

use keywright_core::{
    permission::{Actor, Operations, Permission, PermissionPath},
    ports::RepositoryFailure,
};

use crate::row::{Columns, Decoded, column_at};

/// Decodes the columns of `select_permission!` and `returning_permission!`.
impl Decoded for Permission {
    fn decode(row: &impl Columns) -> Result<Self, RepositoryFailure> {
        let bits: i64 = column_at!(row, 3, "permission", "operations")?;
        Ok(Self {
            id: column_at!(row, 0, "permission", "id")?,
            path: PermissionPath::from_stored(column_at!(row, 1, "permission", "path")?),
            actor: Actor::from_stored(column_at!(row, 2, "permission", "actor")?),
            operations: u8::try_from(bits)
                .ok()
                .and_then(Operations::from_bits)
                .ok_or(RepositoryFailure::Inconsistent("permission.operations"))?,
        })
    }
}
