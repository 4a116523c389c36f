//! Connects the crates of the host.

use std::{fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use keywright_api::{
    Api, HealthCheck, Information, Pipeline,
    development_identity::{
        DevelopmentClient, DevelopmentIdentity, DevelopmentIdentitySettings, DevelopmentUser, Grant,
    },
    management_router,
};
use keywright_core::{
    Secret,
    authorization::Authorization,
    credential::{BulkRegenerations, Credentials},
    encryption_key::{EncryptionKeys, RotateKeys},
    interpolation::Interpolation,
    permission::Permissions,
    ports::{Clock, Identifiers, PermissionRepository},
    response_memory::ResponseMemory,
};
use keywright_crypto::X509Certificates;
use keywright_runtime::Plugins;
use keywright_storage::Database;

use crate::{
    audit,
    background::{
        Background, LeaseHolder,
        retention::retention,
        rotation::{LogReporter, Rotation},
    },
    config::{AuthenticationConfig, AuthorizationConfig, Config, DevelopmentConfig},
    development::{Announcement, IDENTITY_PATH},
    keys::{self, SharedKeyRing},
    measurements::{Recorder, StoredCounts},
    plugins,
    process::{self, RandomIdentifiers},
    served::{Activation, Served},
    started::StartRefused,
    tls::Tls,
    tokens::token_verifier,
};

/// Assembles a server from a configuration, which was read from this file. The server will listen on these addresses.
pub(crate) async fn assemble(
    config: &Config,
    file: &Path,
    addresses: &[SocketAddr],
) -> Result<Served, StartRefused> {
    let recorder = Recorder::install_for(&config.management)?;
    let tls = Arc::new(Tls::load(&config.server.tls)?);
    tls.reload_on_hangup()?;
    let clock = process::clock();
    let development_identity = served_development_identity(config, addresses, &clock)?;
    let token_verifier = token_verifier(config, development_identity.as_ref(), clock.clone())?;
    let audit = audit::start(&config.audit, Arc::clone(&clock))?;
    let identifiers: Arc<dyn Identifiers> = Arc::new(RandomIdentifiers);
    let database = open_database(config, Arc::clone(&identifiers)).await?;
    let (key_ring, activation) = key_ring(config, &database, &identifiers, &clock).await?;
    let plugins = plugins::load(config, file, &key_ring).await?;
    let encryption_keys = encryption_keys(&database, key_ring);
    let mut background = background(config, &database, &clock, &identifiers, &encryption_keys);
    let authorization = authorization(&config.authorization, &database).await?;
    let credentials = Credentials {
        authorization: authorization.clone(),
        repository: Arc::new(database.credentials()),
        reads: Arc::new(database.credentials()),
        sealer: Arc::clone(&encryption_keys.sealer),
        generators: Arc::clone(&plugins) as _,
        certificates: Arc::new(X509Certificates),
        certificate_settings: config.certificates.settings()?,
        bulk_regenerations: BulkRegenerations::default(),
        clock,
        identifiers,
    };
    let server_mode = config.management.server_mode()?;
    if let Some(work) = retention(config, &database, &credentials, audit.as_ref())? {
        background.add(work.paused_in(server_mode.read_only()));
    }
    let interpolation = interpolation(&plugins, &credentials);
    let health = HealthCheck::new(Arc::clone(&credentials.repository), audit.clone());
    let management = recorder.map(|recorder| {
        let stored = StoredCounts::new(&credentials, encryption_keys.clone());
        let page = recorder.page(plugins, database.clone(), stored, audit.clone());
        management_router(Arc::clone(&health), Arc::new(page))
    });
    let announcement = announcement(config, development_identity.is_some());
    let pipeline = Arc::new(Pipeline::new(Api {
        credentials,
        permissions: permissions(&database, authorization),
        encryption_keys,
        interpolation,
        token_verifier,
        audit: audit.clone(),
        health,
        information: information(config),
        limits: config.server.body_limits(),
        request_limits: config.server.request_limits(),
        response_memory: Arc::new(ResponseMemory::new(config.server.response_limits())),
        server_mode,
        development_identity,
    }));
    Ok(Served {
        tls,
        pipeline,
        management,
        announcement,
        audit,
        activation,
        background,
        database,
    })
}

/// Unlocks the configured keys. The active key is recorded later, by [`Served::begin`].
async fn key_ring(
    config: &Config,
    database: &Database,
    identifiers: &Arc<dyn Identifiers>,
    clock: &Arc<dyn Clock>,
) -> Result<(SharedKeyRing, Activation), StartRefused> {
    let (identifiers, now) = (identifiers.as_ref(), clock.now());
    let key_ring = keys::unlock(&config.encryption, database, identifiers, now).await?;
    let activation = Activation {
        repository: database.key_rotation(),
        key_id: key_ring.active_key_id(),
    };
    Ok((key_ring, activation))
}

fn encryption_keys(database: &Database, key_ring: SharedKeyRing) -> EncryptionKeys {
    EncryptionKeys {
        repository: Arc::new(database.encryption_keys()),
        sealer: key_ring.watched(),
    }
}

/// Returns the background tasks.
fn background(
    config: &Config,
    database: &Database,
    clock: &Arc<dyn Clock>,
    identifiers: &Arc<dyn Identifiers>,
    encryption_keys: &EncryptionKeys,
) -> Background {
    let mut background = Background::new(LeaseHolder::new(
        Arc::new(database.leases()),
        Arc::clone(clock),
        Arc::clone(identifiers),
    ));
    let settings = config.encryption.rotation;
    if settings.enabled {
        let rotate = RotateKeys {
            repository: Arc::new(database.key_rotation()),
            sealer: Arc::clone(&encryption_keys.sealer),
        };
        let usage = encryption_keys.clone();
        let reporter = LogReporter::default();
        background.add(Rotation::new(rotate, usage, settings, reporter));
    }
    background
}

fn interpolation(plugins: &Arc<Plugins>, credentials: &Credentials) -> Interpolation {
    Interpolation {
        credentials: credentials.clone(),
        resolvers: Arc::clone(plugins) as _,
    }
}

fn announcement(config: &Config, is_development: bool) -> Option<Announcement> {
    is_development.then(|| Announcement::new(&config.server.tls.certificate))
}

fn information(config: &Config) -> Information {
    Information {
        identity_provider_url: config.authentication.url.clone().unwrap_or_default(),
        application_name: config.info.name.clone(),
        api_level: config.info.api_version.clone(),
    }
}

/// Opens the configured database.
pub(crate) async fn open_database(
    config: &Config,
    identifiers: Arc<dyn Identifiers>,
) -> Result<Database, StartRefused> {
    Database::open(&config.storage.options()?, identifiers)
        .await
        .map_err(|cause| StartRefused::while_doing("opening the database", cause))
}

/// Opens the configured database for reading, without creating or migrating it.
pub(crate) async fn open_database_to_read(config: &Config) -> Result<Database, StartRefused> {
    Database::open_to_read(&config.storage.options()?, Arc::new(RandomIdentifiers))
        .await
        .map_err(|cause| StartRefused::while_doing("opening the database", cause))
}

/// Adds the configured permissions to the stored ones, and returns the authorization.
async fn authorization(
    config: &AuthorizationConfig,
    database: &Database,
) -> Result<Authorization, StartRefused> {
    let permissions = database.permissions();
    let grants = config.grants()?;
    for grant in grants.iter().filter(|grant| !grant.actor.can_log_in()) {
        tracing::warn!(
            "authorization.permissions names {:?} on {}, which no caller can be",
            grant.actor.as_str(),
            grant.path
        );
    }
    permissions
        .grant(&grants)
        .await
        .map_err(|cause| StartRefused::while_doing("adding the configured permissions", cause))?;
    if !config.enforced {
        tracing::warn!(
            "permissions are not enforced: every authenticated caller may do everything"
        );
    }
    Ok(Authorization::new(Arc::new(permissions), config.enforced))
}

fn permissions(database: &Database, authorization: Authorization) -> Permissions {
    Permissions {
        repository: Arc::new(database.permissions()),
        credentials: Arc::new(database.credentials()),
        authorization,
    }
}

fn served_development_identity(
    config: &Config,
    addresses: &[SocketAddr],
    clock: &Arc<dyn Clock>,
) -> Result<Option<DevelopmentIdentity>, StartRefused> {
    let Some(development) = &config.development_identity_provider else {
        return Ok(None);
    };
    refuse_other_than_loopback(addresses)?;
    tracing::warn!(
        "THE DEVELOPMENT IDENTITY PROVIDER IS ON: its secrets are public, so anybody who reaches this server can log in. \
         Never use this configuration in production."
    );
    development_identity(development, &config.authentication, clock).map(Some)
}

/// Creates the configured development identity provider.
pub(crate) fn development_identity(
    development: &DevelopmentConfig,
    authentication: &AuthenticationConfig,
    clock: &Arc<dyn Clock>,
) -> Result<DevelopmentIdentity, StartRefused> {
    let signing_key = fs::read_to_string(&development.signing_key).map_err(|cause| {
        StartRefused::file(
            "reading the token signing key",
            &development.signing_key,
            cause,
        )
    })?;
    let issuer = authentication.url.clone().ok_or_else(|| {
        StartRefused::new(
            "the development identity provider needs its own address as authentication.url",
        )
    })?;
    let settings = DevelopmentIdentitySettings {
        signing_key_pem: Secret::new(signing_key),
        issuer,
        path_prefix: IDENTITY_PATH.to_owned(),
        clients: development_clients(development, &authentication.scopes_required),
        users: development
            .users
            .iter()
            .map(|user| DevelopmentUser {
                id: user.id,
                name: user.name.clone(),
                password: Secret::new(user.password.clone()),
                scopes: authentication.scopes_required.clone(),
            })
            .collect(),
    };
    DevelopmentIdentity::new(settings, Arc::clone(clock))
        .map_err(|cause| StartRefused::while_doing("using the token signing key", cause))
}

/// Checks that the development identity provider is served on loopback addresses only.
pub(crate) fn refuse_other_than_loopback(addresses: &[SocketAddr]) -> Result<(), StartRefused> {
    let mut addresses = addresses.iter();
    let Some(other) = addresses.find(|address| !address.ip().is_loopback()) else {
        return Ok(());
    };
    Err(StartRefused::new(format!(
        "the development identity provider is refused on {other}: its secrets are public, so it is served on loopback \
         addresses alone"
    )))
}

fn development_clients(
    development: &DevelopmentConfig,
    scopes: &[String],
) -> Vec<DevelopmentClient> {
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let clients = development.clients.iter();
    clients
        .map(|client| DevelopmentClient {
            id: client.id.clone(),
            secret: Secret::new(client.secret.clone()),
            grants: if client.secret.is_empty() {
                vec![Grant::Password, Grant::RefreshToken]
            } else {
                vec![
                    Grant::ClientCredentials,
                    Grant::Password,
                    Grant::RefreshToken,
                ]
            },
            scopes: scopes.to_vec(),
            access_token_lifetime: seconds(development.access_token_seconds),
            refresh_token_lifetime: seconds(development.refresh_token_seconds),
        })
        .collect()
}
