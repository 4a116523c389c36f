//! Assembles the server: connects the crates of the host.

use std::{net::SocketAddr, path::Path, sync::Arc};

use keywright_api::{
    Api, HealthCheck, Information, Pipeline, Router, audit::AuditTrail,
    authentication::TokenVerifier, development_identity::DevelopmentIdentity,
};
use keywright_core::{
    authorization::Authorization,
    credential::{Credentials, VersionStore},
    encryption_key::{EncryptionKeys, RotateKeys},
    interpolation::Interpolation,
    permission_management::Permissions,
    ports::{Clock, Generators, Identifiers, KeyRotationRepository, PermissionRepository},
    response_memory::ResponseMemory,
};
use keywright_crypto::X509Certificates;
use keywright_runtime::Plugins;
use keywright_storage::Database;
use uuid::Uuid;

use crate::{
    audit,
    background::{Background, LeaseHolder, retention::retention, rotation::Rotation},
    config::{AuthorizationConfig, Config, ConsoleConfig, DevelopmentConfig},
    console::console,
    development::Announcement,
    keys::{self, SharedKeyRing},
    measurements::{Recorder, StoredCounts},
    plugins,
    process::{self, RandomIdentifiers},
    started::{StartupContext, StartupError},
    tls::Tls,
};

/// A server that is assembled, but does not listen yet.
pub(crate) struct App {
    pub(crate) tls: Arc<Tls>,
    /// Responds to requests.
    pub(crate) pipeline: Arc<Pipeline>,
    /// Responds to requests at the management address, if configured.
    pub(crate) management: Option<Router>,
    /// Printed once the server is listening.
    pub(crate) announcement: Option<Announcement>,
    /// The audit trail, if enabled; closed at shutdown.
    pub(crate) audit: Option<Arc<AuditTrail>>,
    /// The id of the active key, recorded at start-up.
    pub(crate) active_key_id: Uuid,
    /// Background tasks, stopped before the audit trail and the database are closed.
    pub(crate) background: Background,
    /// The database, closed at shutdown.
    pub(crate) database: Database,
}

impl App {
    /// Records this server's active key, and starts the background tasks. Every other step that can fail must come
    /// before this call: a failed start must not change the key to which other servers rotate.
    pub(crate) async fn start(&mut self) -> Result<(), StartupError> {
        self.database
            .activate(self.active_key_id)
            .await
            .while_doing("recording the active encryption key")?;
        self.background.start();
        Ok(())
    }
}

/// Assembles a server from a configuration, which was read from this file. The server will listen on these addresses.
pub(crate) async fn assemble(
    config: &Config,
    file: &Path,
    addresses: &[SocketAddr],
) -> Result<App, StartupError> {
    let recorder = Recorder::install_for(&config.management)?;
    let hangup = process::hangup_signal()?;
    let tls = Tls::load(&config.server.tls, file)?;
    let clock = process::clock();
    let (development_identity, token_verifier) = authentication(config, addresses, &clock)?;
    let audit = audit::start(&config.audit, Arc::clone(&clock))?;
    let identifiers: Arc<dyn Identifiers> = Arc::new(RandomIdentifiers);
    let database = Database::open(&config.storage.options()?, Arc::clone(&identifiers)).await?;
    let (keys, now) = (&config.encryption, clock.now());
    let key_ring = keys::unlock(keys, &database, identifiers.as_ref(), now).await?;
    let active_key_id = key_ring.active_key_id();
    let plugins = plugins::load(config, file, &key_ring, hangup).await?;
    let encryption_keys = encryption_keys(&database, key_ring);
    let mut background = background(config, &database, &clock, &identifiers, &encryption_keys);
    let authorization = authorization(&config.authorization, &database).await?;
    let store = version_store(config, &database, &encryption_keys, clock, identifiers);
    let credentials = credentials(config, &authorization, store, Arc::clone(&plugins) as _);
    let server_mode = config.management.server_mode()?;
    let (trail, read_only) = (audit.as_ref(), server_mode.read_only());
    if let Some(work) = retention(config, &database, &credentials, trail, read_only)? {
        background.add(work);
    }
    let interpolation = interpolation(&authorization, &credentials, &plugins);
    let permissions = permissions(&database, authorization);
    let interface = console(
        config,
        &credentials,
        &permissions,
        &encryption_keys,
        &plugins,
        token_verifier.as_ref(),
    )?;
    let health = HealthCheck::new(Arc::clone(&credentials.store.repository), audit.clone());
    let management = recorder.map(|recorder| {
        let stored = StoredCounts::new(&credentials, encryption_keys.clone());
        recorder.router(&health, plugins, database.clone(), stored, audit.clone())
    });
    let pipeline = Arc::new(Pipeline::new(Api {
        interface,
        credentials,
        permissions,
        encryption_keys,
        interpolation,
        token_verifier,
        audit: audit.clone(),
        trusted_proxies: config.audit.trusted_proxies(),
        health,
        information: information(config),
        limits: config.server.body_limits(),
        request_limits: config.server.request_limits(),
        response_memory: Arc::new(ResponseMemory::new(config.server.response_limits())),
        server_mode,
        development_identity,
    }));
    Ok(App {
        tls,
        pipeline,
        management,
        announcement: announcement(config),
        audit,
        active_key_id,
        background,
        database,
    })
}

fn encryption_keys(database: &Database, key_ring: SharedKeyRing) -> EncryptionKeys {
    EncryptionKeys {
        repository: Arc::new(database.clone()),
        sealer: key_ring.watched(),
    }
}

fn version_store(
    config: &Config,
    database: &Database,
    encryption_keys: &EncryptionKeys,
    clock: Arc<dyn Clock>,
    identifiers: Arc<dyn Identifiers>,
) -> VersionStore {
    VersionStore {
        repository: Arc::new(database.clone()),
        sealer: Arc::clone(&encryption_keys.sealer),
        clock,
        identifiers,
        concatenates_authorities: config.certificates.settings().concatenates_authorities,
    }
}

fn credentials(
    config: &Config,
    authorization: &Authorization,
    store: VersionStore,
    generators: Arc<dyn Generators>,
) -> Arc<Credentials> {
    let (authorization, certificates) = (authorization.clone(), Arc::new(X509Certificates));
    let settings = config.certificates.settings();
    let credentials = Credentials::new(authorization, store, generators, certificates, settings);
    Arc::new(credentials)
}

fn background(
    config: &Config,
    database: &Database,
    clock: &Arc<dyn Clock>,
    identifiers: &Arc<dyn Identifiers>,
    encryption_keys: &EncryptionKeys,
) -> Background {
    let mut background = Background::new(LeaseHolder::new(
        Arc::new(database.clone()),
        Arc::clone(clock),
        Arc::clone(identifiers),
    ));
    let settings = config.encryption.rotation;
    if settings.enabled {
        let rotate = RotateKeys {
            repository: Arc::new(database.clone()),
            sealer: Arc::clone(&encryption_keys.sealer),
        };
        let usage = encryption_keys.clone();
        background.add(Rotation::new(rotate, usage, settings));
    }
    background
}

fn announcement(config: &Config) -> Option<Announcement> {
    let development = config.development_identity_provider.as_ref();
    let console = config.console.as_ref().map(ConsoleConfig::address);
    development.map(|_| Announcement::new(&config.server.tls.certificate, console))
}

fn information(config: &Config) -> Information {
    Information {
        identity_provider_url: config.authentication.url.clone().unwrap_or_default(),
        application_name: config.info.name.clone(),
        api_level: config.info.api_version.clone(),
    }
}

/// Opens the configured database for reading, without creating or migrating it.
pub(crate) async fn open_database_to_read(config: &Config) -> Result<Database, StartupError> {
    Database::open_to_read(&config.storage.options_to_read()?)
        .await
        .map_err(StartupError::from)
}

/// Stores the configured permissions in addition to existing permissions, and returns the authorization.
async fn authorization(
    config: &AuthorizationConfig,
    database: &Database,
) -> Result<Authorization, StartupError> {
    let grants = config.grants()?;
    for grant in grants.iter().filter(|grant| !grant.actor.can_log_in()) {
        tracing::warn!(
            permission.path = %grant.path,
            permission.actor = grant.actor.as_str(),
            "granted a configured permission to an actor that matches no caller"
        );
    }
    database
        .grant(&grants)
        .await
        .while_doing("adding the configured permissions")?;
    if !config.enforced {
        tracing::warn!(
            "permissions are not enforced: every authenticated caller may do everything"
        );
    }
    Ok(Authorization::new(
        Arc::new(database.clone()),
        config.enforced,
    ))
}

fn interpolation(
    authorization: &Authorization,
    credentials: &Credentials,
    plugins: &Arc<Plugins>,
) -> Interpolation {
    Interpolation {
        authorization: authorization.clone(),
        store: credentials.store.clone(),
        resolvers: Arc::clone(plugins) as _,
    }
}

fn permissions(database: &Database, authorization: Authorization) -> Permissions {
    Permissions {
        repository: Arc::new(database.clone()),
        credentials: Arc::new(database.clone()),
        authorization,
    }
}

/// Creates the development identity provider, if it is configured, and the verifier of access tokens, if tokens are
/// accepted.
fn authentication(
    config: &Config,
    addresses: &[SocketAddr],
    clock: &Arc<dyn Clock>,
) -> Result<(Option<DevelopmentIdentity>, Option<Arc<TokenVerifier>>), StartupError> {
    let development_identity = development_identity(config, addresses, clock)?;
    let token_verifier = config.authentication.token_verifier(
        development_identity.as_ref(),
        config.server.tls.client_authorities.is_some(),
        Arc::clone(clock),
    )?;
    Ok((development_identity, token_verifier.map(Arc::new)))
}

fn development_identity(
    config: &Config,
    addresses: &[SocketAddr],
    clock: &Arc<dyn Clock>,
) -> Result<Option<DevelopmentIdentity>, StartupError> {
    let Some(development) = &config.development_identity_provider else {
        return Ok(None);
    };
    DevelopmentConfig::check_addresses(addresses)?;
    tracing::warn!(
        "enabled the development identity provider: its secrets are public; never use this configuration in production"
    );
    let identity = development.identity_provider(&config.authentication, Arc::clone(clock))?;
    Ok(Some(identity))
}
