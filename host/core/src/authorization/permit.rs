//! Proof that a caller may do what it asks for.

use uuid::Uuid;

use crate::{
    authorization::{
        Caller, Rules, Touched,
        trail::{Place, Trail},
    },
    credential::{CredentialName, LookupName},
    permission::{Operation, Permission},
};

/// Proof that a caller may do one thing with one credential, or with the permissions on it. Only this module and its
/// siblings make one, and hand it out once the rules have allowed what was asked.
#[derive(Debug)]
pub struct Permit<'a> {
    trail: &'a Trail,
    place: Place,
    operation: Operation,
    name: LookupName,
    /// What allows the operation, on the name in the casing in which the credential is stored as well.
    rules: Rules,
    /// Whether what is to be deleted may be decrypted first.
    opens_what_it_deletes: bool,
}

impl<'a> Permit<'a> {
    /// Writes down what is asked for; what comes of it is proof only in the hands of a caller that is then let pass.
    pub(super) fn asked(caller: &'a Caller, operation: Operation, name: &LookupName) -> Self {
        Self::on(caller.trail(), operation, name, Rules::none())
    }

    /// The same permit, by these rules, which allow what was asked for.
    pub(super) fn by(self, rules: &Rules) -> Self {
        Self {
            rules: rules.clone(),
            ..self
        }
    }

    /// The name of the credential that it is about, as it was asked for.
    pub(crate) fn name(&self) -> &LookupName {
        &self.name
    }

    /// Whether versions of this credential may be decrypted by it: it must be about that one, to read or to write it, or to
    /// delete it where [`Permit::opening_what_it_deletes`] has said so.
    pub(crate) fn opens(&self, name: &CredentialName) -> bool {
        let may_open = match self.operation {
            Operation::Read | Operation::Write => true,
            Operation::Delete => self.opens_what_it_deletes,
            Operation::ReadAcl | Operation::WriteAcl => false,
        };
        may_open && self.covers(name)
    }

    /// Whether a version of this credential may be sealed by it: it must be about that one, to write it.
    pub(crate) fn seals(&self, name: &CredentialName) -> bool {
        self.operation == Operation::Write && self.covers(name)
    }

    /// The same permit to delete, with which what is deleted may also be decrypted: the answer holds it, and what depends
    /// on it is made anew. Nothing but that needs it; any other permit stays what it is.
    pub(crate) fn opening_what_it_deletes(self) -> Self {
        Self {
            opens_what_it_deletes: true,
            ..self
        }
    }

    /// A permit on another credential, which the service itself must look at or write to in order to do what is
    /// permitted, and on which the caller needs no permission for that. Search for this name to review every such place.
    pub(crate) fn extended_to(&self, operation: Operation, name: &LookupName) -> Self {
        Self::on(self.trail, operation, name, Rules::everything())
    }

    /// Says in the trail which version of the credential it was.
    pub(crate) fn touched_version(&self, credential_id: Uuid, version_id: Uuid) {
        self.trail
            .identify(self.place, credential_id, Some(version_id));
    }

    /// Records in the trail that the response has the value of a version that was stored before, although this permit is not
    /// to read.
    pub(crate) fn disclosed_version(&self, credential_id: Uuid, version_id: Uuid) {
        self.trail.disclose(self.place, credential_id, version_id);
    }

    /// Says in the trail which permission it was that is changed, and whom that one lets do what.
    pub(crate) fn touched_permission(&self, permission: &Permission) {
        self.trail.identify_permission(self.place, permission);
    }

    /// Says in the trail which credential, or which permission, it was.
    pub(crate) fn touched(&self, resource_id: Uuid) {
        self.trail.identify(self.place, resource_id, None);
    }

    fn on(trail: &'a Trail, operation: Operation, name: &LookupName, rules: Rules) -> Self {
        let place = trail.push(Touched {
            operation,
            name: name.asked().to_owned(),
            resource_id: None,
            version_id: None,
            granted: None,
            is_value_disclosed: false,
        });
        Self {
            trail,
            place,
            operation,
            name: name.clone(),
            rules,
            opens_what_it_deletes: false,
        }
    }

    /// Whether it is about this credential, and the caller is allowed the operation on its name in this casing, too.
    fn covers(&self, name: &CredentialName) -> bool {
        self.name == name.lookup() && self.rules.allow(self.operation, name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        authorization::Authentication,
        permission::{Actor, Operations, PermissionPath},
    };

    fn caller() -> Caller {
        let subject = "someone".to_owned();
        let actor = Actor::parse(&subject).unwrap();
        Caller::new(actor, Authentication::Token { subject })
    }

    #[test]
    fn what_a_permit_opens_and_seals_depends_on_its_operation() {
        let caller = caller();
        let name = CredentialName::parse("/a").unwrap();
        for (operation, opens, seals) in [
            (Operation::Read, true, false),
            (Operation::Write, true, true),
            (Operation::Delete, false, false),
            (Operation::ReadAcl, false, false),
            (Operation::WriteAcl, false, false),
        ] {
            let permit = Permit::asked(&caller, operation, &name.lookup());
            assert!(!permit.opens(&name) && !permit.seals(&name), "{operation}");
            let permit = permit.by(&Rules::everything());
            assert_eq!(permit.opens(&name), opens, "{operation}");
            assert_eq!(permit.seals(&name), seals, "{operation}");
            let permit = permit.opening_what_it_deletes();
            let opens = opens || operation == Operation::Delete;
            assert_eq!(permit.opens(&name), opens, "{operation}");
            assert_eq!(permit.seals(&name), seals, "{operation}");
        }
    }

    #[test]
    fn a_permit_is_about_one_credential_whatever_the_casing_and_an_extended_one_about_another() {
        let caller = caller();
        let name = |text| CredentialName::parse(text).unwrap();
        let permit =
            Permit::asked(&caller, Operation::Write, &name("/a").lookup()).by(&Rules::everything());
        assert!(permit.opens(&name("/A")) && permit.seals(&name("/A")));
        assert!(!permit.opens(&name("/a/b")) && !permit.seals(&name("/a/b")));
        let extended = permit.extended_to(Operation::Read, &name("/b").lookup());
        assert!(extended.opens(&name("/b")) && !extended.seals(&name("/b")));
        assert!(!extended.opens(&name("/a")));
    }

    #[test]
    fn a_permit_opens_only_casings_that_the_rules_allow() {
        let caller = caller();
        let name = |text| CredentialName::parse(text).unwrap();
        for (path, opens) in [
            ("/A/*", false),
            ("/a/*", true),
            ("/*", true),
            ("/a/b", true),
        ] {
            let rules = Rules::of(vec![Permission {
                id: Uuid::nil(),
                path: PermissionPath::parse(path).unwrap(),
                actor: caller.actor().clone(),
                operations: Operations::of([Operation::Read]).unwrap(),
            }]);
            let permit = Permit::asked(&caller, Operation::Read, &name("/A/b").lookup()).by(&rules);
            assert_eq!(permit.opens(&name("/a/b")), opens, "{path}");
        }
    }
}
