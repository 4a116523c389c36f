//! Checking a permission.

use super::Fault;
use crate::{
    permission::{Actor, Operations, PermissionPath},
    ports::CheckedPermission,
};

/// Returns all faults of a permission.
pub(super) fn faults(permission: &CheckedPermission) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Err(rule) = PermissionPath::parse(&permission.path) {
        faults.push(Fault::PathMalformed(rule));
    }
    if Actor::parse(&permission.actor).is_err() {
        faults.push(Fault::ActorMalformed);
    }
    let operations = u8::try_from(permission.operations).ok();
    if operations.and_then(Operations::from_bits).is_none() {
        faults.push(Fault::OperationsMalformed);
    }
    faults
}
