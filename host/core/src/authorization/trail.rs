//! What a request has touched, for the audit trail.

use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::permission::Operation;

/// What a request has touched, or tried to, in that order.
#[derive(Debug, Default)]
pub struct Trail(Mutex<Vec<Touched>>);

/// A resource that a request has touched, or tried to. Never a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// What was to be done with it.
    pub operation: Operation,
    /// The credential's name as it was asked for, or the path of a permission.
    pub name: String,
    /// The id of the credential or of the permission, once it is known.
    pub resource_id: Option<Uuid>,
    /// The id of the credential's version, once it is known.
    pub version_id: Option<Uuid>,
}

/// The place of a resource in a trail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize);

impl Trail {
    /// What was touched so far.
    #[must_use]
    pub fn touched(&self) -> Vec<Touched> {
        self.entries().clone()
    }

    /// The place of a resource, which it gets when it is first touched in this way.
    pub(super) fn push(&self, touched: Touched) -> Place {
        let mut entries = self.entries();
        let is_same =
            |entry: &Touched| entry.operation == touched.operation && entry.name == touched.name;
        let place = entries.iter().position(is_same).unwrap_or_else(|| {
            entries.push(touched);
            entries.len() - 1
        });
        Place(place)
    }

    /// Says which resource it is that stands at a place; where that is said already, it is another one of the same name.
    pub(super) fn identify(&self, place: Place, resource_id: Uuid, version_id: Option<Uuid>) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(place.0) else {
            return;
        };
        let identified = Touched {
            resource_id: Some(resource_id),
            version_id,
            ..entry.clone()
        };
        if entry.resource_id.is_none() {
            *entry = identified;
        } else if !entries.contains(&identified) {
            entries.push(identified);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Touched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
