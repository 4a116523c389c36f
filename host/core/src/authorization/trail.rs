//! What a request has touched, for the audit trail.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use uuid::Uuid;

use crate::permission::Operation;

/// What a request has touched, or tried to, in that order.
#[derive(Debug, Default)]
pub struct Trail {
    entries: Mutex<Vec<Touched>>,
    account: Mutex<Account>,
}

/// What there is to say of a request as a whole, beside what it touched. Never a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// What it asked for, where its address alone leaves that open.
    pub action: Option<&'static str>,
    /// More of what it asked for.
    pub details: Option<Value>,
}

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

    /// What was said of the request as a whole so far.
    #[must_use]
    pub fn account(&self) -> Account {
        self.account_mut().clone()
    }

    /// Says what the request asks for, where its address alone leaves that open.
    pub fn tell_action(&self, action: &'static str) {
        self.account_mut().action = Some(action);
    }

    /// Says more of what the request asks for. A value must never be in it.
    pub fn tell_details(&self, details: Value) {
        self.account_mut().details = Some(details);
    }

    pub(super) fn push(&self, touched: Touched) -> Place {
        let mut entries = self.entries();
        entries.push(touched);
        Place(entries.len() - 1)
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
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account_mut(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
