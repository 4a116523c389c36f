//! Checks a configuration without starting the server, and reports all errors at once.
//!
//! The configuration is validated against the schema. Then each section is read separately and checks itself and the
//! files that it refers to, with the code that the server uses. An invalid setting is removed, so that the rest is still
//! checked.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use figment::{Figment, error::Kind, value::Value};
use keywright_api::error_chain;
use keywright_core::ports::{KeyRotationRepository, KeyStatus, Sealer};
use keywright_registry::Cache;
use keywright_runtime::{CacheAccess, CacheKey, LoadError, Runtime, SandboxConfig, SystemRandom};
use keywright_storage::Database;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::{
    config::{
        self, AuditConfig, AuthenticationConfig, AuthorizationConfig, Config, ConsoleConfig,
        DevelopmentConfig, EncryptionConfig, Findings, LogConfig, ManagementConfig, PluginConfig,
        RegistryConfig, RetentionConfig, Section, ServerSection, StorageConfig, in_words, joined,
        name_within, queue_mistake,
    },
    keys::{self, SharedKeyRing},
    ownership::require_own,
    plugins::{self, Components},
    started::StartupError,
    test_authority::test_issuers,
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) loads_plugins: bool,
    /// Whether to connect to the database. Nothing is changed there.
    pub(crate) connects: bool,
}

/// Checks a configuration.
pub(crate) async fn check(file: &Path, extent: Extent) -> Result<Findings, StartupError> {
    let figment = config::read(file)?;
    let mut findings = Findings::default();
    config::check_schema(&figment, &Config::schema(), &mut findings);
    let folder = file.parent().unwrap_or(Path::new(""));
    let invalid = findings.mistakes.iter();
    let mut reader = Reader {
        figment: &figment,
        folder,
        invalid: invalid.map(|mistake| mistake.setting.clone()).collect(),
        findings: &mut findings,
    };
    let sections = check_sections(&mut reader, extent).await;
    check_each_plugin(file, &sections, &mut findings);
    let key_ring = if extent.connects {
        check_key_records(&sections, &mut findings).await
    } else {
        None
    };
    check_plugins(sections, key_ring, extent, &mut findings).await;
    if findings.mistakes.is_empty() {
        // Reports errors that no check of a section finds.
        findings.ok_or_report("the configuration", Config::load(file));
    }
    Ok(findings)
}

/// The valid sections that plugins need. An absent optional section has its default.
struct Sections {
    storage: Option<StorageConfig>,
    encryption: Option<EncryptionConfig>,
    plugins: Option<SandboxConfig>,
    registry: Option<RegistryConfig>,
    generators: BTreeMap<String, PluginConfig>,
    resolver: Option<PluginConfig>,
}

/// Checks each section, except the plugins.
async fn check_sections(reader: &mut Reader<'_>, extent: Extent) -> Sections {
    let server: Option<ServerSection> = reader.section("server");
    let authentication: Option<AuthenticationConfig> = reader.section_or_default("authentication");
    let development: Option<DevelopmentConfig> = reader.section("development_identity_provider");
    let management: Option<ManagementConfig> = reader.section_or_default("management");
    if let Some(server) = &server {
        let addresses = server.check(reader.findings);
        if let Some(management) = &management {
            management.check_address(&addresses, reader.findings);
        }
        if let Some(development) = &development {
            development.check(authentication.as_ref(), &addresses, reader.findings);
        }
    }
    let storage: Option<StorageConfig> = reader.section("storage");
    if let Some(storage) = &storage {
        storage.check(extent.connects, reader.findings).await;
    }
    let encryption: Option<EncryptionConfig> = reader.section("encryption");
    if let Some(encryption) = &encryption {
        encryption.check(reader.findings);
    }
    let console: Option<ConsoleConfig> = reader.section("console");
    if let Some(authentication) = &authentication {
        let accepts_certificates =
            server.is_none_or(|server| server.tls.client_authorities.is_some());
        authentication.check(development.is_some(), accepts_certificates, reader.findings);
        if let Some(console) = console {
            console.check(authentication, reader.findings);
        }
    }
    if let Some(authorization) = reader.section_or_default::<AuthorizationConfig>("authorization") {
        authorization.check(reader.findings);
    }
    if let Some(audit) = reader.section_or_default::<AuditConfig>("audit") {
        audit.check(reader.findings);
    }
    if let Some(log) = reader.section_or_default::<LogConfig>("log") {
        reader.findings.ok_or_report("log.filter", log.filter());
    }
    if let Some(retention) = reader.section_or_default::<RetentionConfig>("retention") {
        let policies = retention.policies();
        reader.findings.ok_or_report("retention.policies", policies);
    }
    if let Some(management) = management {
        management.check(reader.findings);
    }
    let plugins: Option<SandboxConfig> = reader.section("plugins");
    if let Some((setting, what)) = plugins.as_ref().and_then(queue_mistake) {
        reader.findings.mistake(setting, what);
    }
    let registry: Option<RegistryConfig> = reader.section_or_default("registry");
    if let Some(registry) = &registry {
        registry.check(reader.findings);
    }
    Sections {
        storage,
        encryption,
        plugins,
        registry,
        generators: reader.generators(),
        resolver: reader.section("resolver"),
    }
}

/// Reads sections, and reports unreadable settings.
struct Reader<'a> {
    figment: &'a Figment,
    folder: &'a Path,
    /// Settings that are removed, so that the rest of their sections can be read.
    invalid: Vec<String>,
    findings: &'a mut Findings,
}

impl Reader<'_> {
    /// Reads a section, if it exists and is valid, with relative paths resolved against the folder. Missing settings are not
    /// reported here.
    fn section<T: Section + DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let section = self.figment.find_value(name).ok()?;
        self.section_of(name, section)
    }

    fn section_of<T: Section + DeserializeOwned>(
        &mut self,
        name: &str,
        mut section: Value,
    ) -> Option<T> {
        for invalid in &self.invalid {
            let within = invalid.strip_prefix(name);
            if let Some(within) = within.and_then(|within| within.strip_prefix('.')) {
                remove_setting(&mut section, within);
            }
        }
        match T::deserialize(&section) {
            Ok(mut section) => {
                section.resolve_paths(self.folder);
                Some(section)
            }
            Err(errors) => {
                for error in errors {
                    if !matches!(error.kind, Kind::MissingField(_)) {
                        let setting = name_within(name, &error.path);
                        self.findings.mistake(setting, in_words(&error.kind));
                    }
                }
                None
            }
        }
    }

    /// Reads a section, or returns its default if it is absent.
    fn section_or_default<T: Section + DeserializeOwned + Default>(
        &mut self,
        name: &str,
    ) -> Option<T> {
        if self.figment.find_value(name).is_err() {
            return Some(T::default());
        }
        self.section(name)
    }

    fn generators(&mut self) -> BTreeMap<String, PluginConfig> {
        let configured = self.figment.find_value("generators").ok();
        let named = configured.and_then(Value::into_dict);
        let named = named.into_iter().flatten();
        named
            .filter_map(|(name, section)| {
                let plugin = self.section_of(&joined("generators", &name), section)?;
                Some((name, plugin))
            })
            .collect()
    }
}

fn remove_setting(section: &mut Value, setting: &str) {
    let segments = setting.split(['.', '[']);
    let segments: Vec<_> = segments.map(|name| name.trim_end_matches(']')).collect();
    let Some((last, above)) = segments.split_last() else {
        return;
    };
    let mut value = section;
    for segment in above {
        let inner = match value {
            Value::Dict(_, fields) => fields.get_mut(*segment),
            Value::Array(_, items) => {
                let index = segment.parse::<usize>().ok();
                index.and_then(|index| items.get_mut(index))
            }
            _ => None,
        };
        let Some(inner) = inner else { return };
        value = inner;
    }
    // Removing a list item would shift the indices of later items.
    if let Value::Dict(_, fields) = value {
        fields.remove(*last);
    }
}

/// Connects to the database, and checks that the configured keys decrypt its values. Returns `None` also for a database without a
/// current schema, which a server migrates at its start.
async fn check_key_records(sections: &Sections, findings: &mut Findings) -> Option<SharedKeyRing> {
    let encryption = sections.encryption.as_ref()?;
    let options = sections.storage.as_ref()?.options_to_read().ok()?;
    let database = Database::open_to_read(&options).await.ok()?;
    let unlocked = keys::unlock_to_read(encryption, &database).await;
    let key_ring = findings.ok_or_report("encryption.keys", unlocked)?;
    let in_use = database.keys_in_use().await.unwrap_or_default();
    let unknown = |id: &Uuid| key_ring.status(*id) == KeyStatus::Unknown;
    for id in in_use.into_iter().filter(unknown) {
        let what = format!(
            "stored values can't be read: their encryption key {id} is not configured, or its password is wrong"
        );
        findings.warning("encryption.keys", what);
    }
    Some(key_ring)
}

/// Checks the sandbox, and loads each plugin as the server does. Components in registries are pulled, unless they are cached.
/// Nothing is written.
///
/// Components are compiled last, and only if there are no errors, because compilation is slow. Components in the plugin cache are
/// not compiled if the keys of the cache are known. The cache is not used if another unprivileged user could replace its folder: that
/// user may know the keys.
async fn check_plugins(
    sections: Sections,
    key_ring: Option<SharedKeyRing>,
    extent: Extent,
    findings: &mut Findings,
) {
    if let Some(sandbox) = &sections.plugins {
        let folder = &sandbox.cache_directory;
        findings.check_private_folder("plugins.cache_directory", folder);
    }
    if !extent.loads_plugins {
        return;
    }
    let sandbox = sections.plugins;
    let mut sandbox = sandbox.unwrap_or_else(|| SandboxConfig::new(PathBuf::new()));
    let (cache_key, cache) = match require_own(&sandbox.cache_directory) {
        Ok(folder) => {
            let cache = Cache::read_only(&folder);
            sandbox.cache_directory = folder;
            let key = cache_key(sections.encryption.as_ref(), key_ring).await;
            (key, cache)
        }
        Err(_) => (None, Cache::default()),
    };
    let components = Components {
        registry: &sections.registry.unwrap_or_default(),
        cache,
    };
    let resolver = sections.resolver.as_ref();
    let collected = components.collect(sandbox, &sections.generators, resolver);
    let (config, missing) = collected.await;
    for refused in missing {
        // A malformed key of a signature has been reported.
        let mut mistakes = findings.mistakes.iter();
        if !mistakes.any(|mistake| mistake.setting.starts_with(&refused.setting)) {
            findings.mistake(refused.setting.clone(), refused.without_plugin());
        }
    }
    let config = Arc::new(config);
    let uncompiled = Arc::clone(&config);
    report_refusals(
        on_blocking_thread(move || Runtime::check_components(&uncompiled)).await,
        findings,
    );
    if !findings.mistakes.is_empty() {
        let what = "the components were not compiled, because there are errors; correct them and check again";
        findings.warning("plugins", what);
        return;
    }
    let checked = on_blocking_thread(move || {
        let cache = cache_key
            .as_ref()
            .map_or(CacheAccess::None, CacheAccess::Read);
        Runtime::check(&config, cache, Arc::new(SystemRandom), test_issuers())
    });
    report_refusals(checked.await, findings);
}

/// Runs a check on a thread that does not serve requests.
async fn on_blocking_thread(
    check: impl FnOnce() -> Vec<LoadError> + Send + 'static,
) -> Vec<LoadError> {
    tokio::task::spawn_blocking(check)
        .await
        .unwrap_or_else(|cause| vec![LoadError::Threads(cause.into())])
}

/// Returns the key of the plugin cache, if it can be derived from the configuration or the connected database.
async fn cache_key(
    encryption: Option<&EncryptionConfig>,
    key_ring: Option<SharedKeyRing>,
) -> Option<CacheKey> {
    let key = plugins::cache_key_without_database(encryption?).await;
    key.or_else(|| plugins::cache_key(&key_ring?).ok())
}

fn report_refusals(refusals: Vec<LoadError>, findings: &mut Findings) {
    for refused in refusals {
        let setting = match &refused {
            LoadError::Plugin(plugin) => {
                let section = if plugin.is_generator {
                    joined("generators", &plugin.plugin)
                } else {
                    "resolver".to_owned()
                };
                match plugin.refusal.setting() {
                    Some(setting) => joined(&section, setting),
                    None => section,
                }
            }
            _ => "plugins".to_owned(),
        };
        let what = match &refused {
            LoadError::Plugin(plugin) if setting.ends_with(".component") => {
                format!("{}: {}", plugin.component, error_chain(&plugin.refusal))
            }
            LoadError::Plugin(plugin) => error_chain(&plugin.refusal),
            refused => error_chain(refused),
        };
        findings.mistake(setting, what);
    }
}

fn check_each_plugin(file: &Path, sections: &Sections, findings: &mut Findings) {
    let generators = sections.generators.iter();
    let generators = generators.map(|(name, plugin)| (format!("generators.{name}"), plugin));
    let resolver = sections.resolver.iter();
    let resolver = resolver.map(|plugin| ("resolver".to_owned(), plugin));
    for (section, plugin) in generators.chain(resolver) {
        if let Some(signature) = &plugin.signature {
            findings.ok_or_report(format!("{section}.signature"), signature.key());
        }
        if !plugin.settings.is_empty() {
            findings.warn_if_world_accessible(&format!("{section}.settings"), file);
        }
    }
}
