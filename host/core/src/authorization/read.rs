//! Permitting a read and reading in one step.

use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Authorization, Caller, NAME_OF_NOTHING, Permit, Rules, decide},
    credential::{LookupName, StoredVersion},
    permission::{Operation, PermissionPath},
    ports::{
        CredentialRepository, PermittedRead, PermittedReads, PermittedVersions, VersionKey,
        VersionSelection,
    },
};

/// The sources of a permitted read.
#[derive(Clone, Copy)]
pub(crate) struct ReadSources<'r> {
    pub(crate) reads: &'r dyn PermittedReads,
    pub(crate) repository: &'r dyn CredentialRepository,
}

impl Authorization {
    /// As [`Authorization::permit`] for [`Operation::Read`]. Also returns versions of the credential, possibly none, still
    /// encrypted.
    ///
    /// # Errors
    /// [`Failure::NotFound`] if the caller may not read the credential, or it does not exist.
    pub(crate) async fn permit_read<'a>(
        &self,
        caller: &'a Caller,
        sources: ReadSources<'_>,
        name: &LookupName,
        versions: VersionKey,
    ) -> Result<(Permit<'a>, Vec<StoredVersion>), Failure> {
        let asked = Permit::asked(caller, Operation::Read, name);
        if !self.is_enforced {
            let stored = sources.versions(name, versions).await?;
            return Ok((asked.by(&Rules::everything()), stored));
        }
        let (rules, found) = self.read_by_rules(caller, sources, name, versions).await?;
        let permit = decide(&rules, Operation::Read, name.asked(), asked)?;
        if !found.versions.is_empty() {
            return Ok((permit, found.versions));
        }
        // Permissions are looked up even if there is no stored name, so that both refusals take the same time.
        let stored = found.stored_name.as_ref();
        let stored_name = stored.map_or(name.asked(), |stored| stored.as_str());
        let on_stored = self.rules_about(caller, stored_name).await?;
        if stored.is_none() {
            return Err(Failure::NotFound);
        }
        let permit = decide(&rules.and(&on_stored), Operation::Read, stored_name, permit)?;
        Ok((permit, sources.versions(name, versions).await?))
    }

    /// Refuses to read a version whose id does not exist, after the same work as for one that the caller may not read.
    pub(crate) async fn refuse_absent_version(
        &self,
        caller: &Caller,
        sources: ReadSources<'_>,
        id: Uuid,
    ) -> Failure {
        if !self.is_enforced {
            return Failure::NotFound;
        }
        let name = LookupName::new(NAME_OF_NOTHING);
        let read = self.read_by_rules(caller, sources, &name, VersionKey::Id(id));
        read.await.err().unwrap_or(Failure::NotFound)
    }

    /// Reads the rules of a caller that cover a name, and the versions if these rules allow it.
    async fn read_by_rules(
        &self,
        caller: &Caller,
        sources: ReadSources<'_>,
        name: &LookupName,
        versions: VersionKey,
    ) -> Result<(Rules, PermittedVersions), Failure> {
        let covering = PermissionPath::covering(name.asked());
        let read = PermittedRead {
            actor: caller.actor(),
            operation: Operation::Read,
            paths: &covering,
            name,
            versions,
        };
        let mut rules = Rules::none();
        let mut permits = |permissions| {
            rules = Rules::of(permissions);
            rules.allow(Operation::Read, name.asked())
        };
        let found = sources.reads.read(read, &mut permits).await?;
        Ok((rules, found))
    }
}

impl ReadSources<'_> {
    async fn versions(
        self,
        name: &LookupName,
        versions: VersionKey,
    ) -> Result<Vec<StoredVersion>, Failure> {
        let selection = match versions {
            VersionKey::Current => VersionSelection::Current,
            VersionKey::Id(id) => {
                let version = self.repository.version_by_id(id).await?;
                return Ok(version.into_iter().collect());
            }
            VersionKey::Newest(count) => VersionSelection::Newest(count),
        };
        Ok(self.repository.versions_by_name(name, selection).await?)
    }
}
