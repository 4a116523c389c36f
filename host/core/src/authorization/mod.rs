//! Authorization: the one place that decides whether a caller may do what it asks for.
//!
//! A use case asks [`Authorization`] and gets a [`Permit`]. Each question, whatever its answer, stands in the caller's
//! [`Trail`], from which the audit trail is written.
//!
//! What the types guarantee: `Credentials::open` and `Credentials::seal`, through which alone use cases decrypt and encrypt,
//! take a permit that is about the very credential, and look at its operation: to seal it must be one to write, to open one
//! to read or to write, or one to delete that says by name that it opens what it deletes. Nothing outside this crate can
//! make a permit. What they do not guarantee is that a use case asks before it lists, deletes, or reads what is not
//! encrypted, nor that it asks for the right operation. For that, there are tests: `host/api/tests/service/routes.rs` walks
//! the list of which the router is made, and has every route refuse a caller who has no permission at all; which operation
//! each route needs, and that no other will do, is the table in `tests/api/authorization/`.
//!
//! Whoever may not read a credential must not learn whether it exists: the answer is [`Failure::NotFound`] in either case,
//! and what it takes to decide does not grow with what there is. By name, nothing but the stored name is read before the
//! decision: the caller must be allowed the operation in the casing of the request and in the casing of the stored name. By id, one look at an index says which name to ask about, and where there is none, as many
//! permissions are looked for as about any other. A missing write permission alone has an answer of its own,
//! [`Failure::WriteNotPermitted`], which is the same for names that exist and for those that don't; writes by the id of a
//! certificate tell an id that nothing has, since ids can't be guessed.

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

/// Decides who may do what.
#[derive(Clone)]
pub struct Authorization {
    permissions: Arc<dyn PermissionRepository>,
    is_enforced: bool,
}

impl Authorization {
    /// Decides by these permissions; where they are not enforced, every caller may do everything.
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

    /// Lets a caller do one thing with one credential, which need not exist. It must be allowed on the name as the caller
    /// asks for it and, if the credential is stored in another casing, on the stored name as well.
    ///
    /// # Errors
    /// [`Failure::WriteNotPermitted`] when the caller may not write, [`Failure::NotFound`] when it may not do anything else.
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

    /// Lets a caller do one thing with the permissions on one path. The casing of the path is the caller's.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when it may not.
    pub(crate) async fn permit_path<'a>(
        &self,
        caller: &'a Caller,
        operation: Operation,
        path: &PermissionPath,
    ) -> Result<Permit<'a>, Failure> {
        self.permit_exactly(caller, operation, &path.lookup()).await
    }

    /// Lets a caller do one thing with a credential that it named by an id; `None` when nothing has that id, which takes
    /// as much work to refuse as what may not be seen. The casing of the name is the stored one.
    ///
    /// # Errors
    /// [`Failure::NotFound`] when there is nothing; otherwise as [`Authorization::permit`].
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

    /// Lets a caller do one thing with a name in exactly this casing.
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

    /// Refuses what a caller named by an id that nothing has, after the work that refusing anything takes.
    pub(crate) async fn refuse_absent(&self, caller: &Caller) -> Failure {
        match self.rules_about(caller, NAME_OF_NOTHING).await {
            Ok(_) => Failure::NotFound,
            Err(failure) => failure,
        }
    }

    /// All rules about a caller, for answers that are made of what it may read.
    ///
    /// # Errors
    /// When the database can't answer.
    pub(crate) async fn rules_of(&self, caller: &Caller) -> Result<Rules, Failure> {
        if !self.is_enforced {
            return Ok(Rules::everything());
        }
        let permissions = self.permissions.of_actor(caller.actor()).await?;
        Ok(Rules::of(permissions))
    }

    /// The rules about a caller that cover one name, or one path.
    async fn rules_about(&self, caller: &Caller, name: &str) -> Result<Rules, Failure> {
        if !self.is_enforced {
            return Ok(Rules::everything());
        }
        let covering = PermissionPath::covering(name);
        let permissions = self
            .permissions
            .of_actor_on(caller.actor(), &covering)
            .await?;
        Ok(Rules::of(permissions))
    }
}

/// What is asked for when an id names nothing. No permission can be about it: no path holds a space.
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
