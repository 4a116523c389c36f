//! A repository in memory.

mod rows;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::{
    credential::{
        ChainLink, CredentialName, CredentialType, EffectiveExpiry, Find, FindNames,
        FoundCredential, GeneratedCredential, IssuedCredential, ListedCertificate,
        ListedCredential, LookupName, PluginDigest, StoredVersion,
    },
    permission::{Actor, Permission, PermissionPath},
    ports::{
        Additions, AllAppended, AppendCondition, Appended, CertificateLists, CredentialKey,
        CredentialRepository, CredentialSearches, EXPIRY_MOMENTS, EncryptionKeyRepository,
        ExpiryCounts, NewVersion, NewestSize, PermissionRepository, PermittedRead,
        PermittedVersions, ReadVersions, Receive, RepositoryError, SignedName, SignedTypes,
        TransitionalVersion, VersionChange, VersionChanged, VersionKey, VersionSelection,
        VersionsSize,
    },
};
use rows::{ciphertext_bytes, selected, signed_by, signed_name, stored};
use uuid::Uuid;

use crate::permissions_in_memory::PermissionsInMemory;

#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) permissions: Arc<PermissionsInMemory>,
    versions: Mutex<Vec<StoredVersion>>,
    pub(crate) is_unavailable: AtomicBool,
    /// Whether adding a version succeeds without a response.
    pub(crate) is_stalled_after_append: AtomicBool,
    /// Whether adding many versions always conflicts with other writers.
    pub(crate) is_contended: AtomicBool,
    /// Whether a credential is deleted and recreated just before a version is added to it.
    pub(crate) is_recreated_before_append: AtomicBool,
    /// Whether everything is deleted just before a version is added.
    pub(crate) is_deleted_before_append: AtomicBool,
    /// The remaining number of times that `/root` gets another version just before a version is added.
    pub(crate) root_replaced_before_append: AtomicUsize,
    /// A number of bytes that is added to the size of each version.
    pub(crate) bytes_added_to_sizes: AtomicUsize,
    pub(crate) pings: AtomicUsize,
    /// The number of reads of more than names.
    reads: AtomicUsize,
}

#[async_trait]
impl CredentialRepository for Memory {
    async fn name_of_version(&self, id: Uuid) -> Result<Option<CredentialName>, RepositoryError> {
        self.name_where(|stored| stored.id == id)
    }

    async fn name_of_certificate(
        &self,
        credential_id: Uuid,
    ) -> Result<Option<CredentialName>, RepositoryError> {
        self.name_where(|stored| {
            stored.credential_id == credential_id && stored.credential_type.is_certificate()
        })
    }

    async fn stored_name(
        &self,
        name: &LookupName,
    ) -> Result<Option<CredentialName>, RepositoryError> {
        self.name_where(|stored| stored.name.lookup() == *name)
    }

    async fn read_permitted(
        &self,
        read: PermittedRead<'_>,
        permits: &mut (dyn FnMut(Vec<Permission>) -> bool + Send),
    ) -> Result<PermittedVersions, RepositoryError> {
        let of_actor = self.permissions.of_actor_on(read.actor, read.paths);
        if !permits(of_actor.await?) {
            return Ok(PermittedVersions::default());
        }
        let stored_name = self.stored_name(read.name).await?;
        let stored = stored_name.as_ref().map(CredentialName::as_str);
        if stored != Some(read.name.requested()) {
            return Ok(PermittedVersions {
                versions: Vec::new(),
                stored_name,
            });
        }
        let selection = match read.versions {
            VersionKey::Current => VersionSelection::Current,
            VersionKey::Id(id) => {
                let version = self.version_by_id(id).await?;
                return Ok(PermittedVersions {
                    versions: version.into_iter().collect(),
                    stored_name: None,
                });
            }
            VersionKey::Newest(count) => VersionSelection::Newest(count),
        };
        Ok(PermittedVersions {
            versions: self
                .versions_of(CredentialKey::Name(read.name), selection)
                .await?,
            stored_name: None,
        })
    }

    async fn version_by_id(&self, id: Uuid) -> Result<Option<StoredVersion>, RepositoryError> {
        Ok(self
            .newest_first()?
            .into_iter()
            .find(|stored| stored.id == id))
    }

    async fn versions_of(
        &self,
        credential: CredentialKey<'_>,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryError> {
        let mut versions = self.newest_first()?;
        versions.retain(|stored| match credential {
            CredentialKey::Id(id) => stored.credential_id == id,
            CredentialKey::Name(name) => stored.name.lookup() == *name,
        });
        Ok(selected(versions, selection))
    }

    async fn size_of_versions(
        &self,
        _: &Actor,
        credential: CredentialKey<'_>,
        count_max: u32,
    ) -> Result<VersionsSize, RepositoryError> {
        let selection = VersionSelection::Newest(count_max);
        let versions = self.versions_of(credential, selection).await?;
        Ok(VersionsSize {
            count: u32::try_from(versions.len()).unwrap(),
            ciphertext_bytes: versions.iter().map(ciphertext_bytes).sum(),
        })
    }

    async fn newest_sizes_by_names(
        &self,
        actor: &Actor,
        names: &[LookupName],
    ) -> Result<Vec<NewestSize>, RepositoryError> {
        let newest = self.newest_by_names(actor, names).await?;
        let sizes = newest.into_iter().map(|stored| NewestSize {
            ciphertext_bytes: ciphertext_bytes(&stored)
                + self.bytes_added_to_sizes.load(Ordering::Relaxed),
            name: stored.name,
        });
        Ok(sizes.collect())
    }

    async fn newest_by_names(
        &self,
        _: &Actor,
        names: &[LookupName],
    ) -> Result<Vec<StoredVersion>, RepositoryError> {
        let names: HashSet<&str> = names.iter().map(LookupName::folded).collect();
        let mut newest = BTreeMap::new();
        for version in self.newest_first()? {
            let folded = version.name.lookup().folded().to_owned();
            if names.contains(folded.as_str()) {
                newest.entry(folded).or_insert(version);
            }
        }
        Ok(newest.into_values().collect())
    }

    async fn newest_signed_by(
        &self,
        signers: &[LookupName],
        _: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<StoredVersion>, RepositoryError> {
        Ok(signed_by(self.newest_first()?, signers, count_max))
    }

    async fn names_signed_by(
        &self,
        _: &Actor,
        signers: &[LookupName],
        _: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<SignedName>, RepositoryError> {
        let newest = signed_by(self.newest_first_uncounted()?, signers, count_max);
        Ok(newest.into_iter().map(signed_name).collect())
    }

    async fn append(
        &self,
        version: NewVersion,
        condition: AppendCondition,
        unchanged: &[ReadVersions],
    ) -> Result<Appended, RepositoryError> {
        if self.is_recreated_before_append.load(Ordering::SeqCst) {
            let new_id = Uuid::new_v4();
            for stored in self.versions.lock().unwrap().iter_mut() {
                stored.credential_id = new_id;
            }
        }
        if self.is_deleted_before_append.load(Ordering::SeqCst) {
            self.versions.lock().unwrap().clear();
        }
        let replace = |count: usize| count.checked_sub(1);
        let replaced = &self.root_replaced_before_append;
        if replaced
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, replace)
            .is_ok()
        {
            self.store_signed("/root", "/root");
        }
        for read in unchanged {
            let key = CredentialKey::Name(&read.name);
            let versions = self.versions_of(key, read.selection).await?;
            if !versions
                .iter()
                .map(|stored| stored.id)
                .eq(read.ids.iter().copied())
            {
                return Ok(Appended::Outdated);
            }
        }
        let name = version.name.lookup();
        let key = CredentialKey::Name(&name);
        let existing = self.versions_of(key, VersionSelection::All).await?;
        if let Some(existing) = existing.first()
            && existing.credential_type != version.credential_type
        {
            return Ok(Appended::TypeDiffers(existing.credential_type.clone()));
        }
        if let AppendCondition::CredentialIs(id) = condition
            && existing
                .first()
                .is_none_or(|existing| existing.credential_id != id)
        {
            return Ok(Appended::Changed);
        }
        if version.attributes.is_transitional
            && existing
                .iter()
                .any(|existing| existing.attributes.is_transitional)
        {
            return Ok(Appended::TransitionalExists);
        }
        let credential_id = existing
            .first()
            .map_or_else(Uuid::new_v4, |existing| existing.credential_id);
        let stored = {
            let mut versions = self.versions.lock().unwrap();
            let sequence = i64::try_from(versions.len()).unwrap();
            let stored = stored(version, sequence, credential_id);
            versions.push(stored.clone());
            stored
        };
        if self.is_stalled_after_append.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok(Appended::Written(Box::new(stored)))
    }

    async fn append_all(&self, additions: Additions) -> Result<AllAppended, RepositoryError> {
        if self.is_contended.load(Ordering::SeqCst) {
            let versions = additions.versions.into_iter();
            let versions = versions.map(|(version, _)| version).collect();
            return Ok(AllAppended::Changed(versions));
        }
        let mut versions = self.versions.lock().unwrap();
        let mut written = Vec::new();
        for (version, _) in additions.versions {
            let sequence = i64::try_from(versions.len()).unwrap();
            let stored = stored(version, sequence, Uuid::nil());
            versions.push(stored.clone());
            written.push(stored);
        }
        Ok(AllAppended::Written(written))
    }

    async fn change_version(
        &self,
        credential_id: Uuid,
        change: VersionChange,
        _: Additions,
    ) -> Result<VersionChanged, RepositoryError> {
        let mut versions = self.versions.lock().unwrap();
        let own = |stored: &&mut StoredVersion| stored.credential_id == credential_id;
        match change {
            VersionChange::Delete(_) if versions.iter_mut().filter(own).count() == 1 => {
                return Ok(VersionChanged::IsOnly);
            }
            VersionChange::Delete(id) => versions.retain(|stored| stored.id != id),
            VersionChange::Move(to) => {
                let chosen = match to {
                    TransitionalVersion::Id(id) => Some(id),
                    TransitionalVersion::Latest => {
                        versions.iter_mut().rev().find(own).map(|own| own.id)
                    }
                    TransitionalVersion::None => None,
                };
                if chosen.is_some_and(|id| versions.iter_mut().filter(own).all(|own| own.id != id))
                {
                    return Ok(VersionChanged::VersionAbsent);
                }
                for version in versions.iter_mut().filter(own) {
                    version.attributes.is_transitional = Some(version.id) == chosen;
                }
            }
        }
        let mut own: Vec<StoredVersion> = versions.clone();
        own.retain(|stored| stored.credential_id == credential_id);
        own.reverse();
        let current = selected(own, VersionSelection::Current);
        Ok(VersionChanged::Written(current))
    }

    async fn delete(&self, name: &LookupName) -> Result<Option<Uuid>, RepositoryError> {
        let mut versions = self.versions.lock().unwrap();
        let is_deleted = |stored: &mut StoredVersion| stored.name.lookup() == *name;
        let deleted = versions.extract_if(.., is_deleted).last();
        assert!(
            deleted.is_some(),
            "an absent credential needs no transaction"
        );
        Ok(deleted.map(|stored| stored.credential_id))
    }

    async fn ping(&self) -> Result<(), RepositoryError> {
        self.pings.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.newest_first_uncounted().map(|_| ())
    }
}

#[async_trait]
impl CredentialSearches for Memory {
    async fn find(
        &self,
        _: &Actor,
        find: &Find,
        receive: Receive<'_, FoundCredential>,
    ) -> Result<(), RepositoryError> {
        let _ = self.found(find)?.into_iter().try_for_each(receive);
        Ok(())
    }

    async fn list(
        &self,
        _: &Actor,
        from: &str,
        before: &str,
        count_max: u32,
    ) -> Result<Vec<ListedCredential>, RepositoryError> {
        self.listed_between(from, before, count_max)
    }

    async fn generated_by(
        &self,
        _: &Actor,
        _digest: &PluginDigest,
        names: &FindNames,
        receive: Receive<'_, GeneratedCredential>,
    ) -> Result<(), RepositoryError> {
        let find = Find {
            names: names.clone(),
            expires_until: None,
        };
        let found = self.found(&find)?.into_iter();
        let generated = found.map(|found| GeneratedCredential {
            found,
            is_newest: true,
        });
        let _ = generated.into_iter().try_for_each(receive);
        Ok(())
    }

    async fn derived_from(
        &self,
        _: &Actor,
        _input: &LookupName,
        names: &FindNames,
        receive: Receive<'_, FoundCredential>,
    ) -> Result<(), RepositoryError> {
        let find = Find {
            names: names.clone(),
            expires_until: None,
        };
        let _ = self.found(&find)?.into_iter().try_for_each(receive);
        Ok(())
    }

    async fn count_by_type(
        &self,
        _: &Actor,
        _: &PermissionPath,
        _: u64,
    ) -> Result<Vec<(CredentialType, u64)>, RepositoryError> {
        self.newest_first().map(|_| Vec::new())
    }
}

#[async_trait]
impl CertificateLists for Memory {
    async fn certificates(
        &self,
        _: &Actor,
        types: SignedTypes,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryError> {
        let _ = self.listed(types)?.into_iter().try_for_each(receive);
        Ok(())
    }

    async fn authorities(
        &self,
        actor: &Actor,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryError> {
        self.certificates(actor, SignedTypes::Certificates, receive)
            .await
    }

    async fn certificate(
        &self,
        _: &Actor,
        name: &LookupName,
        types: SignedTypes,
    ) -> Result<Option<ListedCertificate>, RepositoryError> {
        let certificates = self.listed(types)?;
        Ok(certificates
            .into_iter()
            .find(|certificate| certificate.name.lookup() == *name))
    }

    async fn credentials_by_expiry(
        &self,
        _: [DateTime<Utc>; EXPIRY_MOMENTS],
    ) -> Result<Vec<ExpiryCounts>, RepositoryError> {
        self.newest_first().map(|_| Vec::new())
    }

    async fn certificates_signed_by(
        &self,
        _: &Actor,
        _: &LookupName,
    ) -> Result<Vec<CredentialName>, RepositoryError> {
        Ok(Vec::new())
    }

    async fn issued_by(
        &self,
        _: &Actor,
        _: &LookupName,
    ) -> Result<Vec<IssuedCredential>, RepositoryError> {
        Ok(Vec::new())
    }

    async fn effective_expiries(
        &self,
        _: &Actor,
        names: &FindNames,
        until: DateTime<Utc>,
        receive: Receive<'_, EffectiveExpiry>,
    ) -> Result<(), RepositoryError> {
        let find = Find {
            names: names.clone(),
            expires_until: Some(until),
        };
        let found = self.found(&find)?.into_iter();
        let mut expiries = found.map(|found| EffectiveExpiry {
            link: ChainLink {
                depth: 1,
                name: None,
                version_id: None,
                expires_at: until,
            },
            name: found.name,
            version_created_at: found.version_created_at,
        });
        let _ = expiries.try_for_each(receive);
        Ok(())
    }

    async fn transitional_authorities(
        &self,
        _: &Actor,
        _: Receive<'_, CredentialName>,
    ) -> Result<(), RepositoryError> {
        self.newest_first().map(|_| ())
    }
}

#[async_trait]
impl EncryptionKeyRepository for Memory {
    async fn encryptions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryError> {
        Ok(Vec::new())
    }

    async fn versions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryError> {
        let mut versions: HashMap<Uuid, u64> = HashMap::new();
        for stored in self.newest_first()? {
            *versions.entry(stored.envelope.key_id).or_default() += 1;
        }
        Ok(versions.into_iter().collect())
    }
}
