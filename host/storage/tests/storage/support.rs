//! Creates a new database for each test. The name of the test program, `sqlite` or `postgres`, selects the engine.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use keywright_core::{
    certificate::{CertificateFacts, SerialNumber},
    credential::{
        CredentialName, CredentialType, Find, FoundCredential, LookupName, StoredVersion,
        VersionAttributes,
    },
    permission::Actor,
    ports::{
        Additions, AppendCondition, Appended, CredentialKey, CredentialRepository,
        CredentialSearches, Envelope, Identifiers, KeyDerivation, KeyRecord, NewVersion,
        PasswordDerivation, RepositoryError, TransitionalVersion, VersionChange, VersionChanged,
        VersionSelection,
    },
};
use keywright_storage::{Database, DatabaseOptions, PostgresOptions, SqliteOptions};
use keywright_test_postgres::PostgresServer;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) struct Fixture {
    pub(crate) location: Location,
    pub(crate) database: Database,
    identifiers: Arc<CountingIdentifiers>,
}

/// The location of a test's database.
pub(crate) enum Location {
    File(TempDir),
    Server { url: String },
}

impl Location {
    pub(crate) fn new() -> Self {
        if !is_on_postgres() {
            return Self::File(tempfile::tempdir().unwrap());
        }
        let Some(server) = keywright_test_postgres::shared() else {
            // Without a server, nothing can be tested. `shared` has printed a message.
            std::process::exit(0);
        };
        Self::Server {
            url: server.new_database(),
        }
    }

    pub(crate) fn options(&self) -> DatabaseOptions {
        self.options_with(WAIT_MAX)
    }

    pub(crate) fn options_with(&self, wait_max: Duration) -> DatabaseOptions {
        match self {
            Self::File(folder) => DatabaseOptions::Sqlite(SqliteOptions {
                path: folder.path().join(FILE_NAME),
                may_create: true,
                readers_max: 2,
                wait_max,
            }),
            Self::Server { url } => DatabaseOptions::Postgres(PostgresOptions {
                wait_max,
                ..postgres_options(url)
            }),
        }
    }
}

pub(crate) fn postgres_options(url: &str) -> PostgresOptions {
    PostgresOptions {
        url: url.to_owned(),
        password: None,
        root_certificate: None,
        readers_max: 2,
        writers_max: 4,
        wait_max: WAIT_MAX,
    }
}

/// Returns the ids 1, 2, 3, …
#[derive(Default)]
pub(crate) struct CountingIdentifiers(AtomicU64);

impl Identifiers for CountingIdentifiers {
    fn fresh(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// Returns the actor of searches.
pub(crate) fn reader() -> Actor {
    Actor::client("reader").unwrap()
}

impl Fixture {
    pub(crate) async fn find(&self, find: &Find) -> Result<Vec<FoundCredential>, RepositoryError> {
        let mut all = Vec::new();
        let mut receive = |found| {
            all.push(found);
            ControlFlow::Continue(())
        };
        self.database.find(&reader(), find, &mut receive).await?;
        Ok(all)
    }

    pub(crate) async fn new() -> Self {
        let fixture = Self::open(Location::new()).await;
        fixture.add_key(&key(KEY_ID, 1)).await;
        fixture
    }

    /// Adds the record of a key, even if there are other records.
    pub(crate) async fn add_key(&self, key: &KeyRecord) {
        let records = self.database.encryption_keys().await.unwrap();
        let known = records.iter().map(|record| record.id).collect();
        assert!(self.database.add_encryption_key(key, &known).await.unwrap());
    }

    pub(crate) async fn open(location: Location) -> Self {
        let identifiers = Arc::new(CountingIdentifiers::default());
        let database = Database::open(
            &location.options(),
            Arc::<CountingIdentifiers>::clone(&identifiers),
        )
        .await
        .unwrap();
        Self {
            location,
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
        let attributes = VersionAttributes::default();
        self.append_with(name, credential_type, milliseconds, attributes)
            .await
    }

    pub(crate) async fn append_with(
        &self,
        name: &str,
        credential_type: &str,
        milliseconds: i64,
        attributes: VersionAttributes,
    ) -> Uuid {
        let new = version(self, name, credential_type, milliseconds);
        self.write(NewVersion { attributes, ..new }).await
    }

    pub(crate) async fn append_transitional(&self, name: &str, milliseconds: i64) -> Uuid {
        let attributes = VersionAttributes {
            is_transitional: true,
            ..VersionAttributes::default()
        };
        self.append_with(name, "certificate", milliseconds, attributes)
            .await
    }

    pub(crate) async fn write(&self, new: NewVersion) -> Uuid {
        // The database stores whole milliseconds. The repository must truncate the additional half millisecond.
        let created_at = new.created_at + TimeDelta::microseconds(500);
        let mut new = NewVersion { created_at, ..new };
        loop {
            let appending = self
                .database
                .append(new.clone(), AppendCondition::Always, &[]);
            match appending.await.unwrap() {
                Appended::Written(written) => return written.id,
                // The credential exists with another casing. As in the server, the caller retries with the stored name.
                Appended::CasingDiffers(name) if name != new.name => new.name = name,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Appends a version if the condition holds.
    pub(crate) async fn append_if(
        &self,
        new: NewVersion,
        condition: AppendCondition,
    ) -> Result<Appended, RepositoryError> {
        self.database.append(new, condition, &[]).await
    }

    /// Returns the versions of a credential in this selection.
    pub(crate) async fn versions(
        &self,
        name: &str,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryError> {
        let name = LookupName::new(name);
        let key = CredentialKey::Name(&name);
        self.database.versions_of(key, selection).await
    }

    pub(crate) async fn append_certificate(
        &self,
        name: &str,
        is_transitional: bool,
        milliseconds: i64,
        expires_at_milliseconds: i64,
    ) -> Uuid {
        let attributes = VersionAttributes {
            is_transitional,
            certificate: Some(facts(expires_at_milliseconds)),
            ..VersionAttributes::default()
        };
        self.append_with(name, "certificate", milliseconds, attributes)
            .await
    }

    pub(crate) async fn all(&self, name: &str) -> Vec<StoredVersion> {
        self.versions(name, VersionSelection::ALL).await.unwrap()
    }

    pub(crate) async fn move_transitional(&self, credential: Uuid, to: TransitionalVersion) {
        let (to, none) = (VersionChange::Move(to), Additions::default());
        let moved = self.database.change_version(credential, to, none).await;
        assert!(matches!(moved.unwrap(), VersionChanged::Written(_)));
    }

    /// Changes rows like another program would.
    pub(crate) async fn change(&self, sql: &str) {
        match &self.location {
            Location::File(folder) => {
                let mut connection = other_connection(folder).await;
                let changing =
                    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection);
                changing.await.unwrap();
            }
            Location::Server { url } => drop(server().run_at(url, sql)),
        }
    }

    /// Returns the count that a statement selects.
    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        match &self.location {
            Location::File(folder) => {
                let mut connection = other_connection(folder).await;
                let counting = sqlx::query_scalar(sql).fetch_one(&mut connection);
                counting.await.unwrap()
            }
            Location::Server { url } => server().run_at(url, sql).parse().unwrap(),
        }
    }
}

/// Returns whether the test program, which is named after its engine, tests PostgreSQL.
pub(crate) fn is_on_postgres() -> bool {
    module_path!().starts_with("postgres::")
}

/// Returns an SQL expression for this many zero bytes.
pub(crate) fn zeros(bytes: usize) -> String {
    if is_on_postgres() {
        format!("decode(repeat('00', {bytes}), 'hex')")
    } else {
        format!("zeroblob({bytes})")
    }
}

/// Opens a connection like another process would.
pub(crate) async fn other_connection(folder: &TempDir) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(folder.path().join(FILE_NAME));
    SqliteConnection::connect_with(&options).await.unwrap()
}

/// Returns the PostgreSQL server that all tests share.
pub(crate) fn server() -> &'static PostgresServer {
    keywright_test_postgres::shared().unwrap()
}

/// Returns a version that can be appended.
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
        attributes: VersionAttributes::default(),
        inputs: Vec::new(),
        envelope: Envelope {
            key_id: KEY_ID,
            nonce: vec![7; 12],
            ciphertext: format!("sealed {name}").into_bytes(),
        },
    }
}

pub(crate) fn key(id: Uuid, milliseconds: i64) -> KeyRecord {
    let (salt, iterations) = (vec![1; 64], 210_000);
    KeyRecord {
        id,
        derivation: KeyDerivation::Password(PasswordDerivation { salt, iterations }),
        canary_nonce: vec![2; 12],
        canary_ciphertext: vec![3; 48],
        created_at: at(milliseconds),
    }
}

/// Returns the time this many milliseconds after the epoch.
pub(crate) fn at(milliseconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(milliseconds).unwrap()
}

/// Returns the attributes of a version that this credential signed.
pub(crate) fn signed_by(signer: &str) -> VersionAttributes {
    VersionAttributes {
        signed_by: Some(CredentialName::parse(signer).unwrap()),
        ..VersionAttributes::default()
    }
}

/// Returns the facts of a certificate that expires this many milliseconds after the epoch.
pub(crate) fn facts(expires_at_milliseconds: i64) -> CertificateFacts {
    CertificateFacts {
        expires_at: at(expires_at_milliseconds),
        is_certificate_authority: true,
        is_self_signed: false,
        key_length_bits: 2_048,
        serial_number: Some(SerialNumber::new(vec![0x8f, 0x01])),
    }
}

const FILE_NAME: &str = "test.sqlite";
/// Longer than any test holds a lock, even on a slow machine.
const WAIT_MAX: Duration = Duration::from_mins(2);

/// The id of the key in the envelopes of [`version`].
pub(crate) const KEY_ID: Uuid = Uuid::from_u128(0xffff);
