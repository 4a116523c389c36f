//! Proof that a caller may do what it asks for.

use uuid::Uuid;

use crate::{
    authorization::{
        Caller, Touched,
        trail::{Place, Trail},
    },
    credential::{CredentialName, LookupName},
    permission::{Operation, Permission},
};

/// Proof that a caller may do one thing with one credential, or with the permissions on it. Only
/// [`super::Authorization`] makes one.
#[derive(Debug)]
pub struct Permit<'a> {
    trail: &'a Trail,
    place: Place,
    name: LookupName,
}

impl<'a> Permit<'a> {
    /// Writes down what is asked for; what comes of it is proof only in the hands of a caller that is then let pass.
    pub(super) fn asked(caller: &'a Caller, operation: Operation, name: &LookupName) -> Self {
        let trail = caller.trail();
        let place = trail.push(Touched {
            operation,
            name: name.asked().to_owned(),
            resource_id: None,
            version_id: None,
            granted: None,
        });
        Self {
            trail,
            place,
            name: name.clone(),
        }
    }

    /// The name of the credential that it is about, as it was asked for.
    pub(crate) fn name(&self) -> &LookupName {
        &self.name
    }

    /// Whether it is about this credential.
    pub(crate) fn covers(&self, name: &CredentialName) -> bool {
        self.name == name.lookup()
    }

    /// A permit on another credential, which the service itself must look at or write to in order to do what is
    /// permitted, and on which the caller needs no permission for that. Search for this name to review every such place.
    pub(crate) fn extended_to(&self, operation: Operation, name: &LookupName) -> Self {
        Self {
            trail: self.trail,
            place: self.trail.push(Touched {
                operation,
                name: name.asked().to_owned(),
                resource_id: None,
                version_id: None,
                granted: None,
            }),
            name: name.clone(),
        }
    }

    /// Says in the trail which version of the credential it was.
    pub(crate) fn touched_version(&self, credential_id: Uuid, version_id: Uuid) {
        self.trail
            .identify(self.place, credential_id, Some(version_id));
    }

    /// Says in the trail which permission it was that is changed, and whom that one lets do what.
    pub(crate) fn touched_permission(&self, permission: &Permission) {
        self.trail.identify_permission(self.place, permission);
    }

    /// Says in the trail which credential, or which permission, it was.
    pub(crate) fn touched(&self, resource_id: Uuid) {
        self.trail.identify(self.place, resource_id, None);
    }
}
