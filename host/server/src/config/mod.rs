//! The configuration: one file of TOML, one struct for each section.
//!
//! Relative paths are relative to the file's folder. `KEYWRIGHT_SECTION__NAME` in the environment overrides a setting;
//! `KEYWRIGHT_CLIENT_…` and `KEYWRIGHT_TOKEN` configure the command line as a client, and are ignored here.
//! Except in the `settings` of plugins, the configuration contains no secrets: it names the file or the variable that contains a secret.

mod audit;
mod authentication;
mod authorization;
mod console;
mod development;
mod encryption;
mod findings;
mod management;
mod plugins;
mod reference;
mod retention;
mod schema;
mod server;
mod source;
mod storage;
mod values;

use std::{collections::BTreeMap, path::Path};

use keywright_core::{certificate::DURATION_DAYS_MAX, credential::CertificateSettings};
use keywright_runtime::SandboxConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use crate::started::{StartupContext, StartupError};

pub(crate) use self::{
    audit::{AuditConfig, AuditSinkKind},
    authentication::AuthenticationConfig,
    authorization::AuthorizationConfig,
    console::ConsoleConfig,
    development::{DevelopmentConfig, IDENTITY_PATH},
    encryption::{EncryptionConfig, RotationConfig},
    findings::Findings,
    management::ManagementConfig,
    plugins::{
        ComponentLocation, PluginConfig, RegistryConfig, RegistryHostConfig, SignatureConfig,
        queue_mistake,
    },
    reference::reference,
    retention::RetentionConfig,
    schema::check as check_schema,
    server::{ServerSection, TlsConfig},
    source::{Section, in_words, joined, name_within, read, require_readable},
    storage::StorageConfig,
    values::ListenAddress,
};

/// The configuration of a server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The listener and its limits.
    pub(crate) server: ServerSection,
    /// The database: a SQLite file, or a PostgreSQL server. Either `file` or `url` is required.
    pub(crate) storage: StorageConfig,
    /// The encryption keys for stored values.
    pub(crate) encryption: EncryptionConfig,
    /// Verification of access tokens. Without `url` and `static_key`, no tokens are accepted and callers need client
    /// certificates.
    #[serde(default)]
    pub(crate) authentication: AuthenticationConfig,
    /// The audit trail: one line for each resource that an authenticated request accesses.
    #[serde(default)]
    pub(crate) audit: AuditConfig,
    /// Permissions that the server grants at each start.
    #[serde(default)]
    pub(crate) authorization: AuthorizationConfig,
    /// Settings shared by all plugins: the cache of compiled components, and the two lanes of threads for plugin calls. One lane
    /// runs `generate`, the other lane runs all other functions.
    pub(crate) plugins: SandboxConfig,
    /// The registries from which components are pulled. Registries that are not among `hosts` are used without credentials: over
    /// https, or over http on loopback addresses.
    #[serde(default)]
    pub(crate) registry: RegistryConfig,
    /// The generators, by the credential type that they generate.
    #[serde(default)]
    pub(crate) generators: BTreeMap<String, PluginConfig>,
    /// The plugin that finds references for interpolation. Without it, `/api/v1/interpolate` is not served.
    pub(crate) resolver: Option<PluginConfig>,
    /// Settings for all generated certificates.
    #[serde(default)]
    pub(crate) certificates: CertificatesConfig,
    /// The number and age of versions to keep.
    #[serde(default)]
    pub(crate) retention: RetentionConfig,
    /// Management requests, and the management address.
    #[serde(default)]
    pub(crate) management: ManagementConfig,
    /// The contents of `/info` and `/version`.
    #[serde(default)]
    pub(crate) info: InfoConfig,
    /// Logs, which go to standard error.
    #[serde(default)]
    pub(crate) log: LogConfig,
    /// The console, a user interface for browsers. Without it, `/console` is not served.
    pub(crate) console: Option<ConsoleConfig>,
    /// The development identity provider. Its secrets are public, so never use it in production. With it, the server only starts
    /// on loopback addresses.
    pub(crate) development_identity_provider: Option<DevelopmentConfig>,
}

/// The contents of `/info` and `/version`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InfoConfig {
    /// The name of the service.
    pub(crate) name: String,
    /// The version of the API, by which clients select features. It is not the version of this program.
    pub(crate) api_version: String,
}

impl Default for InfoConfig {
    fn default() -> Self {
        Self {
            name: "Keywright".to_owned(),
            api_version: "2.15.0".to_owned(),
        }
    }
}

/// Logs, which go to standard error. Lines of the access log are written with a delay of at most 100 ms.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogConfig {
    /// The log level: `error`, `warn`, `info`, `debug` or `trace`, or a comma-separated list of `target=level`.
    filter: String,
    /// The format of a line.
    pub(crate) format: LogFormat,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            filter: "info".to_owned(),
            format: LogFormat::Auto,
        }
    }
}

impl LogConfig {
    /// Returns the filter: the environment variable `KEYWRIGHT_LOG`, or the configured filter if it is not set.
    pub(crate) fn filter(&self) -> Result<EnvFilter, StartupError> {
        let variable = std::env::var(FILTER_VARIABLE).ok();
        let (source, wanted) = match &variable {
            Some(wanted) if !wanted.is_empty() => (" of KEYWRIGHT_LOG", wanted),
            _ => ("", &self.filter),
        };
        let refused =
            format!("log.filter: each part of {wanted:?}{source} must be a level or TARGET=LEVEL");
        // A misspelled level would be the only target that is logged.
        let has_level =
            |part: &str| part.contains(['=', '[']) || part.parse::<LevelFilter>().is_ok();
        if wanted.is_empty() || !wanted.split(',').all(has_level) {
            return Err(StartupError::new(refused));
        }
        EnvFilter::try_new(wanted).while_doing(refused)
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text on a terminal, otherwise JSON.
    Auto,
    /// Text.
    Human,
    /// One JSON object per line.
    Json,
}

/// Settings for all generated certificates.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CertificatesConfig {
    /// Minimum duration of a CA certificate; shorter durations are raised to this minimum.
    #[schemars(range(max = DURATION_DAYS_MAX))]
    ca_minimum_duration_in_days: u32,
    /// Minimum duration of any other certificate; shorter durations are raised to this minimum.
    #[schemars(range(max = DURATION_DAYS_MAX))]
    leaf_minimum_duration_in_days: u32,
    /// Whether a CA generated without key usages gets `key_cert_sign` and `crl_sign`.
    enable_default_ca_key_usages: bool,
    /// Whether `ca` of a certificate contains both certificates of its CA during the CA's rotation.
    concatenate_cas: bool,
}

impl CertificatesConfig {
    pub(crate) fn settings(&self) -> CertificateSettings {
        CertificateSettings {
            authority_duration_days_min: self.ca_minimum_duration_in_days,
            leaf_duration_days_min: self.leaf_minimum_duration_in_days,
            has_default_authority_key_usages: self.enable_default_ca_key_usages,
            concatenates_authorities: self.concatenate_cas,
        }
    }
}

impl Section for LogConfig {}

impl Config {
    /// Returns the JSON Schema of the configuration.
    pub(crate) fn schema() -> Value {
        schema::schema_of::<Self>()
    }

    /// Reads a configuration. An error never repeats a value, which may be a misplaced secret.
    pub(crate) fn load(path: &Path) -> Result<Self, StartupError> {
        let figment = read(path)?;
        let mut findings = Findings::default();
        check_schema(&figment, &Self::schema(), &mut findings);
        let mut config = None;
        if findings.mistakes.is_empty() {
            match figment.extract::<Self>() {
                Ok(extracted) => config = Some(extracted),
                Err(errors) => errors.into_iter().for_each(|error| {
                    findings.mistake(name_within("", &error.path), in_words(&error.kind));
                }),
            }
        }
        let Some(mut config) = config else {
            let mistakes: Vec<_> = findings.mistakes.iter().map(ToString::to_string).collect();
            let mistakes = mistakes.join("; ");
            return Err(StartupError::file(
                "reading the configuration",
                path,
                mistakes,
            ));
        };
        let mut mistakes = config.server.mistakes();
        mistakes.extend(queue_mistake(&config.plugins));
        if let Some((setting, what)) = mistakes.into_iter().next() {
            return Err(StartupError::new(format!("{setting}: {what}")));
        }
        config.resolve_paths(path.parent().unwrap_or(Path::new("")));
        Ok(config)
    }

    /// Makes relative paths relative to the configuration's folder.
    fn resolve_paths(&mut self, folder: &Path) {
        let plugins = self.generators.values_mut().chain(&mut self.resolver);
        plugins.for_each(|plugin| plugin.resolve_paths(folder));
        self.server.resolve_paths(folder);
        self.storage.resolve_paths(folder);
        self.plugins.resolve_paths(folder);
        self.registry.resolve_paths(folder);
        self.encryption.resolve_paths(folder);
        self.authentication.resolve_paths(folder);
        self.audit.resolve_paths(folder);
        if let Some(console) = &mut self.console {
            console.resolve_paths(folder);
        }
        if let Some(development) = &mut self.development_identity_provider {
            development.resolve_paths(folder);
        }
    }
}

const FILTER_VARIABLE: &str = "KEYWRIGHT_LOG";
