//! A database of its own for each test.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use keywright_core::{
    certificate::CertificateFacts,
    credential::{CredentialName, CredentialType, LookupName, StoredVersion},
    ports::{
        AppendCondition, Appended, CredentialRepository, Envelope, Identifiers, NewVersion,
        VersionSelection,
    },
};
use keywright_storage::{
    EncryptionKeyRow, SqliteCredentialRepository, SqliteDatabase, SqliteEncryptionKeyRepository,
    SqliteOptions,
};
use sqlx::{Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) database: SqliteDatabase,
    pub(crate) credentials: SqliteCredentialRepository,
    pub(crate) encryption_keys: SqliteEncryptionKeyRepository,
    identifiers: Arc<CountingIdentifiers>,
}

/// Ids that count from one.
#[derive(Default)]
struct CountingIdentifiers(AtomicU64);

impl Identifiers for CountingIdentifiers {
    fn fresh(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let fixture = Self::open(tempfile::tempdir().unwrap()).await;
        fixture.encryption_keys.add(&key(KEY_ID, 1)).await.unwrap();
        fixture
    }

    pub(crate) async fn open(folder: TempDir) -> Self {
        let identifiers = Arc::new(CountingIdentifiers::default());
        let options = SqliteOptions {
            path: folder.path().join("test.sqlite"),
            readers_max: 2,
            wait_max: Duration::from_secs(2),
        };
        let database =
            SqliteDatabase::open(&options, Arc::<CountingIdentifiers>::clone(&identifiers))
                .await
                .unwrap();
        Self {
            folder,
            credentials: database.credentials(),
            encryption_keys: database.encryption_keys(),
            database,
            identifiers,
        }
    }

    pub(crate) async fn append(
        &self,
        name: &str,
        credential_type: &str,
        milliseconds: i64,
    ) -> Uuid {
        self.write(version(self, name, credential_type, milliseconds))
            .await
    }

    pub(crate) async fn append_transitional(&self, name: &str, milliseconds: i64) -> Uuid {
        let new = version(self, name, CredentialType::CERTIFICATE, milliseconds);
        self.write(NewVersion {
            is_transitional: true,
            ..new
        })
        .await
    }

    pub(crate) async fn write(&self, new: NewVersion) -> Uuid {
        // Half a millisecond more than is kept: what is told must be what is read back.
        let created_at = new.created_at + TimeDelta::microseconds(500);
        let new = NewVersion { created_at, ..new };
        match self
            .credentials
            .append(new, AppendCondition::Always, &[])
            .await
            .unwrap()
        {
            Appended::Written(written) => written.id,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn append_certificate(
        &self,
        name: &str,
        is_transitional: bool,
        milliseconds: i64,
        expires_at_milliseconds: i64,
    ) -> Uuid {
        let new = version(self, name, CredentialType::CERTIFICATE, milliseconds);
        let certificate = Some(facts(expires_at_milliseconds));
        self.write(NewVersion {
            is_transitional,
            certificate,
            ..new
        })
        .await
    }

    pub(crate) async fn all(&self, name: &str) -> Vec<StoredVersion> {
        self.credentials
            .versions_by_name(&LookupName::new(name), VersionSelection::All)
            .await
            .unwrap()
    }

    /// A connection as another process would have it.
    pub(crate) async fn other_connection(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.folder.path().join("test.sqlite"));
        SqliteConnection::connect_with(&options).await.unwrap()
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql)
            .fetch_one(&mut self.other_connection().await)
            .await
            .unwrap()
    }
}

/// A version that is ready to be appended.
pub(crate) fn version(
    fixture: &Fixture,
    name: &str,
    credential_type: &str,
    milliseconds: i64,
) -> NewVersion {
    NewVersion {
        id: fixture.identifiers.fresh(),
        name: CredentialName::parse(name).unwrap(),
        credential_type: CredentialType::parse(credential_type).unwrap(),
        created_at: at(milliseconds),
        is_transitional: false,
        is_generated: None,
        certificate: None,
        signed_by: None,
        issuer: None,
        provenance: None,
        envelope: Envelope {
            key_id: KEY_ID,
            nonce: vec![7; 12],
            ciphertext: format!("sealed {name}").into_bytes(),
        },
    }
}

/// The record of a key.
pub(crate) fn key(id: Uuid, milliseconds: i64) -> EncryptionKeyRow {
    EncryptionKeyRow {
        id,
        provider: "password".to_owned(),
        derivation: Some((vec![1; 64], 210_000)),
        canary_nonce: vec![2; 12],
        canary_ciphertext: vec![3; 48],
        created_at: at(milliseconds),
    }
}

/// So many milliseconds after the epoch.
pub(crate) fn at(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap()
}

/// What a certificate says that expires so many milliseconds after the epoch.
pub(crate) fn facts(expires_at_milliseconds: i64) -> CertificateFacts {
    CertificateFacts {
        expires_at: at(expires_at_milliseconds),
        is_certificate_authority: true,
        is_self_signed: false,
        key_length_bits: 2_048,
    }
}

/// The key under which [`version`] pretends to be sealed.
pub(crate) const KEY_ID: Uuid = Uuid::from_u128(0xffff);
