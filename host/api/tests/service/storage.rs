//! A SQLite database, with an outage or other writers if a test requires them.

use std::{
    collections::HashSet,
    future::pending,
    ops::ControlFlow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::{
    credential::{
        CredentialName, CredentialType, EffectiveExpiry, Find, FindNames, FoundCredential,
        GeneratedCredential, IssuedCredential, ListedCertificate, ListedCredential, LookupName,
        PluginDigest, PluginIdentity, StoredVersion, VersionAttributes,
    },
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
    ports::{
        Additions, AllAppended, AppendCondition, Appended, CertificateLists, CredentialKey,
        CredentialRepository, CredentialSearches, Deleted, EXPIRY_MOMENTS, EncryptionKeyRepository,
        ExpiryCounts, KeyDerivation, KeyRecord, NewVersion, NewestSize, PermissionRepository,
        PermittedRead, PermittedVersions, ReadVersions, Receive, RepositoryError, SignedName,
        SignedTypes, VersionChange, VersionChanged, VersionSelection, VersionsSize,
    },
};
use keywright_storage::{Database, DatabaseOptions, SqliteOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{
    fakes::{RandomIdentifiers, envelope, facts},
    harness::ACTOR,
};

pub(crate) struct Storage {
    _folder: TempDir,
    pub(crate) database: Database,
    pub(crate) is_unavailable: AtomicBool,
    /// Whether adding a version stalls after its commit.
    is_stalled_after_append: AtomicBool,
    pub(crate) has_stalled: Notify,
    other_writer: Mutex<OtherWriter>,
    bytes_added_to_sizes: AtomicUsize,
    pub(crate) pings: AtomicUsize,
    /// The number of reads that return more than names.
    reads: AtomicUsize,
}

/// The change by another writer just before versions are added.
#[derive(Clone, Copy)]
pub(crate) enum OtherWriter {
    Idle,
    Deletes,
    /// Deletes the credential and creates it again.
    Recreates,
    /// Adds a version, which `/root` signed, to each of these credentials in turn.
    Replaces(&'static [&'static str]),
    /// Adds a version to this credential once, and then [`OtherWriter::Revokes`].
    ReplacesThenRevokes(&'static str),
    /// Revokes the permission of [`ACTOR`] when the versions of this credential, or those that it signed, are read.
    Revokes(&'static str),
}

/// Implements a trait of the repository. The reads call the database unless it is unavailable.
macro_rules! repository {
    (
        $part:ident
        names { $($name:ident($($of_name:ident: $type_of_name:ty),*) -> $named:ty;)* }
        reads { $($read:ident($($of_read:ident: $type_of_read:ty),*) -> $found:ty;)* }
        $($other:tt)*
    ) => {
        #[async_trait]
        impl $part for Storage {
            $(async fn $name(&self, $($of_name: $type_of_name),*) -> Result<$named, RepositoryError> {
                self.available()?.$name($($of_name),*).await
            })*

            $(async fn $read(&self, $($of_read: $type_of_read),*) -> Result<$found, RepositoryError> {
                self.reads.fetch_add(1, Ordering::SeqCst);
                self.available()?.$read($($of_read),*).await
            })*

            $($other)*
        }
    };
}

repository! {
    CredentialSearches
    names {}
    reads {
        find(actor: &Actor, find: &Find, receive: Receive<'_, FoundCredential>) -> ();
        list(actor: &Actor, from: &str, before: &str, count_max: u32) -> Vec<ListedCredential>;
        generated_by(actor: &Actor, digest: &PluginDigest, names: &FindNames, receive: Receive<'_, GeneratedCredential>) -> ();
        derived_from(actor: &Actor, input: &LookupName, names: &FindNames, receive: Receive<'_, FoundCredential>) -> ();
        count_by_type(actor: &Actor, path: &PermissionPath, count_max: u64) -> Vec<(CredentialType, u64)>;
    }
}

repository! {
    CertificateLists
    names {}
    reads {
        certificates(actor: &Actor, types: SignedTypes, receive: Receive<'_, ListedCertificate>) -> ();
        authorities(actor: &Actor, receive: Receive<'_, ListedCertificate>) -> ();
        certificate(actor: &Actor, name: &LookupName, types: SignedTypes, receive: Receive<'_, ListedCertificate>) -> ();
        credentials_by_expiry(moments: [DateTime<Utc>; EXPIRY_MOMENTS]) -> Vec<ExpiryCounts>;
        certificates_signed_by(actor: &Actor, signer: &LookupName) -> Vec<CredentialName>;
        issued_by(actor: &Actor, signer: &LookupName) -> Vec<IssuedCredential>;
        effective_expiries(actor: &Actor, names: &FindNames, until: DateTime<Utc>, receive: Receive<'_, EffectiveExpiry>) -> ();
        transitional_authorities(actor: &Actor, receive: Receive<'_, CredentialName>) -> ();
    }
}

repository! {
    CredentialRepository
    names {
        name_of_version(id: Uuid) -> Option<CredentialName>;
        name_of_certificate(id: Uuid) -> Option<CredentialName>;
        stored_name(name: &LookupName) -> Option<CredentialName>;
        names_signed_by(actor: &Actor, signers: &[LookupName], types: SignedTypes, count_max: u32) -> Vec<SignedName>;
    }
    reads {
        version_by_id(id: Uuid) -> Option<StoredVersion>;
        size_of_versions(actor: &Actor, credential: CredentialKey<'_>, count_max: u32) -> VersionsSize;
        newest_by_names(actor: &Actor, names: &[LookupName]) -> Vec<StoredVersion>;
        change_version(id: Uuid, change: VersionChange, additions: Additions) -> VersionChanged;
    }

    async fn versions_of(
        &self,
        credential: CredentialKey<'_>,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let other_writer = *self.other_writer.lock().unwrap();
        if let (OtherWriter::Revokes(name), CredentialKey::Name(read)) = (other_writer, credential)
            && read.requested() == name
        {
            self.revoke_everything().await;
        }
        self.available()?.versions_of(credential, selection).await
    }

    async fn newest_signed_by(
        &self,
        signers: &[LookupName],
        types: SignedTypes,
        count_max: u32,
    ) -> Result<Vec<StoredVersion>, RepositoryError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let other_writer = *self.other_writer.lock().unwrap();
        if let OtherWriter::Revokes(name) = other_writer
            && signers.iter().any(|signer| signer.requested() == name)
        {
            self.revoke_everything().await;
        }
        self.available()?.newest_signed_by(signers, types, count_max).await
    }

    async fn read_permitted(
        &self,
        read: PermittedRead<'_>,
        permits: &mut (dyn FnMut(Vec<Permission>) -> bool + Send),
    ) -> Result<PermittedVersions, RepositoryError> {
        let mut permits = |permissions| {
            let is_permitted = permits(permissions);
            self.reads.fetch_add(is_permitted.into(), Ordering::SeqCst);
            is_permitted
        };
        self.available()?.read_permitted(read, &mut permits).await
    }

    async fn newest_sizes_by_names(
        &self,
        actor: &Actor,
        names: &[LookupName],
    ) -> Result<Vec<NewestSize>, RepositoryError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let mut sizes = self.credentials().newest_sizes_by_names(actor, names).await?;
        for size in &mut sizes {
            size.ciphertext_bytes += self.bytes_added_to_sizes.load(Ordering::Relaxed);
        }
        Ok(sizes)
    }

    async fn append(
        &self,
        version: NewVersion,
        condition: AppendCondition,
        unchanged: &[ReadVersions],
    ) -> Result<Appended, RepositoryError> {
        let other_writer = *self.other_writer.lock().unwrap();
        match other_writer {
            OtherWriter::Idle | OtherWriter::Replaces(..) | OtherWriter::Revokes(_) => {
                self.replace().await;
            }
            OtherWriter::ReplacesThenRevokes(name) => {
                self.set_other_writer(OtherWriter::Revokes(name));
                self.store_signed(name, "/root").await;
            }
            OtherWriter::Deletes => drop(self.credentials().delete(&version.name).await?),
            OtherWriter::Recreates => self.recreate(&version.name).await,
        }
        let appended = self.credentials().append(version, condition, unchanged).await;
        if self.is_stalled_after_append.load(Ordering::SeqCst) {
            self.has_stalled.notify_one();
            pending::<()>().await;
        }
        appended
    }

    async fn append_all(&self, additions: Additions) -> Result<AllAppended, RepositoryError> {
        self.replace().await;
        self.credentials().append_all(additions).await
    }

    async fn delete(&self, name: &CredentialName) -> Result<Deleted, RepositoryError> {
        let deleted = self.credentials().delete(name).await?;
        assert_ne!(deleted, Deleted::Nothing, "an absent credential needs no transaction");
        let other_writer = *self.other_writer.lock().unwrap();
        if matches!(other_writer, OtherWriter::Revokes(deleted) if deleted == name.as_str()) {
            self.revoke_everything().await;
        }
        Ok(deleted)
    }

    async fn ping(&self) -> Result<(), RepositoryError> {
        self.pings.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.available()?.ping().await
    }
}

impl Storage {
    /// Creates a database that grants everything to [`ACTOR`].
    pub(crate) async fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = DatabaseOptions::Sqlite(SqliteOptions {
            path: folder.path().join("service.sqlite"),
            may_create: true,
            readers_max: 4,
            wait_max: Duration::from_mins(2),
        });
        let database = Database::open(&options, Arc::new(RandomIdentifiers));
        let database = database.await.unwrap();
        let key = KeyRecord {
            id: envelope("").key_id,
            derivation: KeyDerivation::Raw,
            canary_nonce: vec![2; 12],
            canary_ciphertext: vec![3; 48],
            created_at: DateTime::UNIX_EPOCH,
        };
        let added = database.add_encryption_key(&key, &HashSet::new()).await;
        assert!(added.unwrap());
        let storage = Self {
            _folder: folder,
            database,
            is_unavailable: AtomicBool::default(),
            is_stalled_after_append: AtomicBool::default(),
            has_stalled: Notify::new(),
            other_writer: Mutex::new(OtherWriter::Idle),
            bytes_added_to_sizes: AtomicUsize::default(),
            pings: AtomicUsize::default(),
            reads: AtomicUsize::default(),
        };
        storage.grant_everything().await;
        storage
    }

    pub(crate) async fn grant_everything(&self) {
        self.grant("/*").await;
    }

    /// Grants all operations on a path to [`ACTOR`].
    pub(crate) async fn grant(&self, path: &str) {
        let everything = Grant {
            path: PermissionPath::parse(path).unwrap(),
            actor: Actor::parse(ACTOR).unwrap(),
            operations: Operations::of(Operation::ALL).unwrap(),
        };
        self.database.grant(&[everything]).await.unwrap();
    }

    async fn revoke_everything(&self) {
        let everything = PermissionPath::parse("/*").unwrap();
        let actor = Actor::parse(ACTOR).unwrap();
        let revoking = self.database.delete_of_actor_on(&actor, &everything);
        revoking.await.unwrap();
    }

    fn credentials(&self) -> &dyn CredentialRepository {
        &self.database
    }

    fn available(&self) -> Result<&dyn CredentialRepository, RepositoryError> {
        if self.is_unavailable.load(Ordering::SeqCst) {
            return Err(RepositoryError::Unavailable("cause-of-the-outage".into()));
        }
        Ok(&self.database)
    }

    /// Makes adding a version stall after its commit.
    pub(crate) fn stall(&self, is_stalled: bool) {
        let stalled = &self.is_stalled_after_append;
        stalled.store(is_stalled, Ordering::SeqCst);
    }

    /// Adds this number of bytes to the size of each version.
    pub(crate) fn add_to_sizes(&self, bytes: usize) {
        self.bytes_added_to_sizes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_other_writer(&self, writer: OtherWriter) {
        *self.other_writer.lock().unwrap() = writer;
    }

    async fn replace(&self) {
        let writer = *self.other_writer.lock().unwrap();
        if let OtherWriter::Replaces([name, others @ ..]) = writer {
            self.set_other_writer(OtherWriter::Replaces(others));
            self.store_signed(name, "/root").await;
        }
    }

    async fn recreate(&self, name: &CredentialName) {
        let newest = self.newest(name.as_str()).await;
        self.credentials().delete(name).await.unwrap();
        let version = NewVersion {
            id: Uuid::new_v4(),
            name: newest.name,
            credential_type: newest.credential_type,
            created_at: newest.created_at,
            attributes: newest.attributes,
            inputs: Vec::new(),
            envelope: newest.envelope,
        };
        self.store(vec![version]).await;
    }

    async fn store(&self, versions: Vec<NewVersion>) {
        let versions = versions.into_iter();
        let additions = Additions {
            versions: versions
                .map(|version| (version, AppendCondition::Always))
                .collect(),
            ..Additions::default()
        };
        let stored = self.credentials().append_all(additions).await.unwrap();
        assert!(matches!(stored, AllAppended::Written(_)));
    }

    /// Stores a certificate as if this CA had signed it.
    pub(crate) async fn store_signed(&self, name: &str, signed_by: &str) {
        self.store_all_signed([name.to_owned()], signed_by).await;
    }

    /// Stores certificates as if this CA had signed them.
    pub(crate) async fn store_all_signed(
        &self,
        names: impl IntoIterator<Item = String>,
        signed_by: &str,
    ) {
        let names = names.into_iter();
        let versions = names.map(|name| certificate(&name, signed_by, &fields()));
        self.store(versions.collect()).await;
    }

    /// Stores a certificate as if it had been generated from these parameters, which its plugin now extends with
    /// `more`.
    pub(crate) async fn store_generated(&self, name: &str, parameters: &Value, more: &Value) {
        let mut parameters = parameters.clone();
        parameters["more"] = more.clone();
        self.store(vec![certificate(name, name, &parameters)]).await;
    }

    pub(crate) async fn newest(&self, name: &str) -> StoredVersion {
        let name = LookupName::new(name);
        let newest = self
            .credentials()
            .versions_of(CredentialKey::Name(&name), VersionSelection::Newest(1));
        newest.await.unwrap().remove(0)
    }

    /// Returns the sealed content of the latest version of a credential; the sealer of these tests does not encrypt.
    pub(crate) async fn newest_plaintext(&self, name: &str) -> Value {
        serde_json::from_slice(&self.newest(name).await.envelope.ciphertext).unwrap()
    }

    /// Returns all stored versions.
    pub(crate) async fn everything(&self) -> Vec<StoredVersion> {
        let find = Find {
            names: FindNames::Containing(String::new()),
            expires_until: None,
        };
        let mut names = Vec::new();
        let mut receive = |found: FoundCredential| {
            names.push(found.name.lookup());
            ControlFlow::Continue(())
        };
        let actor = Actor::parse(ACTOR).unwrap();
        self.credentials()
            .find(&actor, &find, &mut receive)
            .await
            .unwrap();
        let mut everything = Vec::new();
        for name in names {
            let versions = self
                .credentials()
                .versions_of(CredentialKey::Name(&name), VersionSelection::ALL);
            everything.extend(versions.await.unwrap());
        }
        everything
    }

    pub(crate) async fn count(&self) -> usize {
        let by_key = self.database.versions_by_key().await.unwrap();
        usize::try_from(by_key[0].1).unwrap()
    }

    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }
}

fn fields() -> Value {
    json!({"certificate": "c", "private_key": "k"})
}

fn certificate(name: &str, signed_by: &str, parameters: &Value) -> NewVersion {
    let content = json!({"value": fields(), "parameters": parameters});
    NewVersion {
        id: Uuid::new_v4(),
        name: CredentialName::parse(name).unwrap(),
        credential_type: CredentialType::certificate(),
        created_at: DateTime::UNIX_EPOCH,
        attributes: VersionAttributes {
            is_generated: Some(true),
            certificate: Some(facts()),
            signed_by: Some(CredentialName::parse(signed_by).unwrap()),
            // A plugin that is not configured any more.
            provenance: Some(PluginIdentity {
                name: "replaced".to_owned(),
                version: "0.1.0".to_owned(),
                digest: "0".repeat(64),
                interface_version: "0.1.0".to_owned(),
            }),
            ..VersionAttributes::default()
        },
        inputs: Vec::new(),
        envelope: envelope(&content.to_string()),
    }
}
