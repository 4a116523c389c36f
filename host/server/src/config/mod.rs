//! The configuration: one file of TOML, one struct for each section.
//!
//! Relative paths are relative to the file's folder. `KEYWRIGHT_SECTION__NAME` in the environment overrides a setting;
//! `KEYWRIGHT_CLIENT_…` and `KEYWRIGHT_TOKEN` configure the command line as a client, and are ignored here.
//! The configuration contains no secrets: it names the file or the variable that contains a secret.

mod audit;
mod authentication;
mod authorization;
mod certificates;
mod encryption;
mod identity;
mod listen;
mod management;
mod number;
mod plugin;
pub(crate) mod reference;
mod registry;
mod retention;
mod rotation;
pub(crate) mod schema;
mod sections;
mod server;
mod storage;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use figment::{
    Figment,
    error::Kind,
    providers::{Env, Format, Toml},
    value::UncasedStr,
};
use keywright_runtime::SandboxConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use audit::{AuditConfig, AuditFailurePolicy, AuditLineFormat, AuditSinkKind};
pub(crate) use authentication::{AuthenticationConfig, StaticKeyConfig};
pub(crate) use authorization::AuthorizationConfig;
pub(crate) use certificates::CertificatesConfig;
pub(crate) use encryption::{
    EncryptionConfig, KeyConfig, KeyOrigin, PluginAddress, SecretKind, SecretSource,
};
pub(crate) use identity::DevelopmentConfig;
pub(crate) use listen::ListenAddress;
pub(crate) use management::ManagementConfig;
pub(crate) use plugin::{ComponentLocation, PluginConfig, SignatureConfig};
pub(crate) use registry::{RegistryConfig, RegistryHostConfig};
pub(crate) use retention::RetentionConfig;
pub(crate) use rotation::RotationConfig;
pub(crate) use sections::Sections;
pub(crate) use server::ServerSection;
pub(crate) use storage::StorageConfig;

use crate::started::StartRefused;

/// The configuration of a server.
#[derive(Debug, Deserialize, JsonSchema)]
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
    /// Permissions that exist from the first start.
    #[serde(default)]
    pub(crate) authorization: AuthorizationConfig,
    /// Settings shared by all plugins: the cache of compiled components, and the two lanes of threads for plugin calls, one for
    /// short calls and one for generating.
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
    /// The development identity provider. Its secrets are in this section and public, so never use it in production. It is
    /// refused on any address but a loopback address.
    pub(crate) development_identity_provider: Option<DevelopmentConfig>,
}

/// The TLS certificates of the server and its clients.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsConfig {
    /// The file with the certificate chain, in PEM, with the server's certificate first. All three files are reloaded at SIGHUP.
    pub(crate) certificate: PathBuf,
    /// The file with its private key, in PEM: PKCS#8, PKCS#1 or SEC1.
    pub(crate) private_key: PathBuf,
    /// The file with the CA certificates that client certificates are verified against, in PEM. Without it, the server requests
    /// no client certificates.
    pub(crate) client_authorities: Option<PathBuf>,
}

impl TlsConfig {
    fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        [&mut self.certificate, &mut self.private_key]
            .into_iter()
            .chain(&mut self.client_authorities)
    }
}

/// The contents of `/info` and `/version`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InfoConfig {
    /// The name of the service.
    pub(crate) name: String,
    /// The API version that clients compare. It is not the version of this program.
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
    pub(crate) filter: String,
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

/// Reads the file and the environment without validating the settings.
///
/// # Errors
/// If the file does not exist or is malformed. The error never repeats its contents, which may be secrets.
pub(crate) fn read(path: &Path) -> Result<Figment, StartRefused> {
    if !path.is_file() {
        return Err(StartRefused::new(format!(
            "there is no configuration at {}",
            path.display()
        )));
    }
    let refused = |cause: String| StartRefused::file("reading the configuration", path, cause);
    let text = fs::read_to_string(path).map_err(|cause| refused(cause.to_string()))?;
    text.parse::<toml::Table>().map_err(|cause| {
        let before = cause.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        refused(format!(
            "malformed TOML in line {line}: {}",
            cause.message()
        ))
    })?;
    Ok(Figment::new()
        .merge(Toml::string(&text))
        .merge(environment()))
}

/// The environment variables that override settings.
fn environment() -> Env {
    let is_ours = |name: &UncasedStr| {
        let is_clients = name
            .as_str()
            .get(..CLIENT_PREFIX.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(CLIENT_PREFIX));
        !is_clients && name != "log" && name != "token"
    };
    Env::prefixed("KEYWRIGHT_").filter(is_ours).split("__")
}

/// The prefix of the client's variables, after `KEYWRIGHT_`. No section's name may start with it.
const CLIENT_PREFIX: &str = "client_";

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// If a setting is invalid. The error never repeats a value, which may be a misplaced secret.
    pub(crate) fn load(path: &Path) -> Result<Self, StartRefused> {
        let mut config: Self = read(path)?.extract().map_err(|cause| {
            let mistakes: Vec<String> = cause.into_iter().map(|error| mistake(&error)).collect();
            StartRefused::file("reading the configuration", path, mistakes.join("; "))
        })?;
        if let Some((setting, what)) = config.server.mistakes().into_iter().next() {
            return Err(StartRefused::new(format!("{setting} {what}")));
        }
        config.resolve_paths(path.parent().unwrap_or(Path::new("")));
        Ok(config)
    }

    /// Makes relative paths relative to the configuration's folder.
    fn resolve_paths(&mut self, folder: &Path) {
        let resolve = |path: &mut PathBuf| *path = folder.join(&*path);
        self.server.tls.files_mut().for_each(resolve);
        self.storage.files_mut().for_each(resolve);
        resolve(&mut self.plugins.cache_directory);
        self.generators
            .values_mut()
            .chain(&mut self.resolver)
            .flat_map(PluginConfig::files_mut)
            .for_each(resolve);
        self.registry.files_mut().for_each(resolve);
        self.encryption.files_mut().for_each(resolve);
        self.authentication.files_mut().for_each(resolve);
        self.audit.file.iter_mut().for_each(resolve);
        if let Some(development) = &mut self.development_identity_provider {
            resolve(&mut development.signing_key);
        }
    }
}

/// Returns the message for an invalid setting.
fn mistake(error: &figment::Error) -> String {
    let setting = error.path.join(".");
    if let Kind::UnknownField(..) = &error.kind
        && let Some(variable) = set_variable(&setting)
    {
        return format!("unknown environment variable {variable}; {VARIABLES}");
    }
    let (what, source) = (sections::in_words(&error.kind), source_of(&setting));
    if setting.is_empty() {
        return what;
    }
    format!("{setting}: {what}{source}")
}

/// Returns the source of a setting that does not come from the file.
pub(crate) fn source_of(setting: &str) -> String {
    set_variable(setting).map_or_else(String::new, |variable| {
        format!(" ({variable} in the environment)")
    })
}

/// Returns the environment variable that overrides a setting, if it is set. Names are case-insensitive.
fn set_variable(setting: &str) -> Option<String> {
    let variable = reference::variable(setting);
    let mut names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.find(|name| name.eq_ignore_ascii_case(&variable))
}

/// Explains the names of variables in errors about unknown ones.
const VARIABLES: &str =
    "a variable whose name begins with KEYWRIGHT_ must name a setting, as KEYWRIGHT_SECTION__NAME";
