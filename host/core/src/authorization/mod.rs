//! Authorization: all decisions on whether a caller may perform an operation.
//!
//! A use case requests a [`Permit`] from [`Authorization`]. Each request, granted or not, is recorded in the caller's
//! [`Trail`], from which the audit trail is written.
//!
//! The types guarantee that use cases decrypt and encrypt only through `Credentials::open` and `Credentials::seal`, which
//! require a permit for this very credential and check its operation. `seal` requires a permit to write. `open` requires one
//! to read or to write, or one to delete that explicitly includes opening. Only this crate can create a permit.
//!
//! The types do not guarantee that a use case requests a permit before it lists, deletes, or reads unencrypted data, nor that it
//! requests the right operation. Tests cover this: `host/api/tests/service/routes.rs` checks that every route of the router
//! refuses a caller without permissions, and the table in `tests/api/authorization/` has the operation that each route
//! requires, and checks that no other suffices.
//!
//! A caller who may not read a credential must not learn whether it exists. The result is [`Failure::NotFound`] in either case,
//! and the work for the decision does not depend on what exists. By name, only the stored name is read before the decision:
//! the caller needs the permission for the name as in the request and for the stored name. By id, one index lookup finds the
//! name; for an unknown id, as many permissions are looked up as for any other. An interpolation of a few names reads the newest
//! versions, still encrypted, together with the stored names, if the caller may read the names as in the request.
//!
//! There are three exceptions:
//! - A missing write permission has its own result, [`Failure::WriteNotPermitted`]. It is the same for names that exist and for
//!   names that don't, except that a name stored in another casing also needs the permission in that casing.
//! - Writes by the id of a certificate reveal unknown ids, because ids can't be guessed.
//! - A caller that may read a CA gets the names of everything that it signed, because a CA can't be replaced safely without them.

mod caller;
mod permit;
mod read;
mod rules;
mod trail;

use std::sync::Arc;

use crate::{
    Failure,
    credential::{CredentialName, LookupName},
    permission::{Operation, PermissionPath},
    ports::PermissionRepository,
};

pub use caller::{Authentication, Caller};
pub use permit::Permit;
pub(crate) use read::ReadSources;
pub(crate) use rules::Rules;
pub use trail::{Account, Granted, Touched, Trail};

/// Decides which operations callers may perform.
#[derive(Clone)]
pub struct Authorization {
    permissions: Arc<dyn PermissionRepository>,
    is_enforced: bool,
}

impl Authorization {
    /// Creates an authorization with these permissions. If they are not enforced, every caller may do everything.
    #[must_use]
    pub fn new(permissions: Arc<dyn PermissionRepository>, is_enforced: bool) -> Self {
        Self {
            permissions,
            is_enforced,
        }
    }

    /// Whether permissions are enforced.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// Permits an operation on a credential, which need not exist. The caller needs the permission for the name as in the request
    /// and, if the credential is stored in another casing, also for the stored name.
    ///
    /// # Errors
    /// [`Failure::WriteNotPermitted`] if the caller may not write, [`Failure::NotFound`] for all other operations.
    pub async fn permit<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        name: &LookupName,
    ) -> Result<Permit<'a>, Failure> {
        let asked = Permit::asked(caller, operation, name);
        if !self.is_enforced {
            return Ok(asked.by(&Rules::everything()));
        }
        let covering = PermissionPath::covering(name.asked());
        let (mut permissions, stored) = self
            .permissions
            .of_actor_on_name(caller.actor(), &covering, name)
            .await?;
        let Some(stored) = stored.filter(|stored| stored.as_str() != name.asked()) else {
            return decide(&Rules::of(permissions), operation, name.asked(), asked);
        };
        let rules = Rules::of(permissions.clone());
        let asked = decide(&rules, operation, name.asked(), asked)?;
        let covering = PermissionPath::covering(stored.as_str());
        let on_stored = self.permissions.of_actor_on(caller.actor(), &covering);
        permissions.extend(on_stored.await?);
        decide(&Rules::of(permissions), operation, stored.as_str(), asked)
    }

    /// Permits an operation on the permissions of a path, in the casing of the request.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if the caller may not.
    pub(crate) async fn permit_path<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        path: &PermissionPath,
    ) -> Result<Permit<'a>, Failure> {
        self.permit_exactly(caller, operation, &path.lookup()).await
    }

    /// Permits an operation on a credential named by an id, with the stored casing of its name. `None` means that the id is
    /// unknown; refusing it takes as much work as refusing a credential that the caller may not see.
    ///
    /// # Errors
    /// [`Failure::NotFound`] for `None`; otherwise as [`Authorization::permit`].
    pub async fn permit_stored<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        stored: Option<&CredentialName>,
    ) -> Result<Permit<'a>, Failure> {
        if let Some(name) = stored {
            return self.permit_exactly(caller, operation, &name.lookup()).await;
        }
        Err(self.refuse_absent(caller).await)
    }

    /// Permits an operation on a name in exactly this casing.
    async fn permit_exactly<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        name: &LookupName,
    ) -> Result<Permit<'a>, Failure> {
        let asked = Permit::asked(caller, operation, name);
        let rules = self.rules_about(caller, name.asked()).await?;
        decide(&rules, operation, name.asked(), asked)
    }

    /// Refuses an unknown id, after the same work as for any other refusal.
    pub(crate) async fn refuse_absent(&self, caller: &Caller) -> Failure {
        match self.rules_about(caller, NAME_OF_NOTHING).await {
            Ok(_) => Failure::NotFound,
            Err(failure) => failure,
        }
    }

    /// Returns all rules of a caller, for responses that contain only what it may read.
    ///
    /// # Errors
    /// If the database query fails.
    pub(crate) async fn rules_of(&self, caller: &Caller) -> Result<Rules, Failure> {
        if !self.is_enforced {
            return Ok(Rules::everything());
        }
        let permissions = self.permissions.of_actor(caller.actor()).await?;
        Ok(Rules::of(permissions))
    }

    /// Returns the rules of a caller that cover any of these names, or all of its rules if they are covered by more than
    /// [`PATHS_AT_ONCE`] paths.
    pub(crate) async fn rules_about_all(
        &self,
        caller: &Caller,
        names: &[LookupName],
    ) -> Result<Rules, Failure> {
        let mut covering = Vec::new();
        for name in names {
            for path in PermissionPath::covering(name.asked()) {
                if !covering.contains(&path) {
                    covering.push(path);
                }
            }
            if covering.len() > PATHS_AT_ONCE {
                return self.rules_of(caller).await;
            }
        }
        self.rules_on(caller, &covering).await
    }

    /// Returns the rules of a caller that cover one name or path.
    async fn rules_about(&self, caller: &Caller, name: &str) -> Result<Rules, Failure> {
        let covering = PermissionPath::covering(name);
        self.rules_on(caller, &covering).await
    }

    async fn rules_on(&self, caller: &Caller, paths: &[PermissionPath]) -> Result<Rules, Failure> {
        if !self.is_enforced {
            return Ok(Rules::everything());
        }
        let permissions = self.permissions.of_actor_on(caller.actor(), paths).await?;
        Ok(Rules::of(permissions))
    }
}

/// The maximum number of paths for which permissions are looked up one by one. Most callers have fewer permissions than that.
const PATHS_AT_ONCE: usize = 64;

/// The name looked up for an unknown id. No permission can cover it, because paths can't contain spaces.
const NAME_OF_NOTHING: &str = "/ / / /";

fn decide<'a>(
    rules: &Rules,
    operation: Operation,
    name: &str,
    asked: Permit<'a>,
) -> Result<Permit<'a>, Failure> {
    if rules.allow(operation, name) {
        return Ok(asked.by(rules));
    }
    Err(match operation {
        Operation::Write => Failure::WriteNotPermitted,
        Operation::Read | Operation::Delete | Operation::ReadAcl | Operation::WriteAcl => {
            Failure::NotFound
        }
    })
}
