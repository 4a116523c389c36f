//! Plugins, with their components, required signatures and grants, and the registries of components.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use keywright_registry::{
    Access, CosignKey, Credentials, DockerConfig, MinisignKey, PinnedReference, PullLimits,
    ReferenceError, Registry, RegistryHost, SignatureKey, is_reference,
};
use keywright_runtime::{COMPONENT_BYTES_MAX, Grant, Limits, SandboxConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};

use super::{
    findings::Findings,
    source::{Section, read_text},
    values::{Number, SecretSource},
};
use crate::{
    started::{StartupContext, StartupError},
    tls::certificates::read_trusted_authorities,
};

/// One plugin.
// It has no `Debug`, because its settings may be secret.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginConfig {
    /// The WebAssembly component: a file, or `oci://HOST[:PORT]/REPOSITORY[:TAG]@sha256:DIGEST` with the digest of the
    /// manifest in a registry. The tag is only informational.
    #[schemars(with = "String")]
    pub(crate) component: ComponentLocation,
    /// The required SHA-256 of the component, in lower-case hexadecimal. Any component is accepted if it is not set.
    #[serde(default)]
    pub(crate) sha256: Option<String>,
    /// The required signature of the component: one of the two keys. Without it, signatures are not checked.
    #[serde(default)]
    pub(crate) signature: Option<SignatureConfig>,
    /// Settings passed to the plugin with each call; the plugin's documentation describes them. They may contain
    /// secrets, and are never shown.
    #[serde(default, deserialize_with = "json_settings")]
    pub(crate) settings: Map<String, Value>,
    /// Host interfaces that the plugin may use. A plugin that imports others is rejected.
    #[serde(default)]
    pub(crate) grants: Vec<Grant>,
    /// Only for generators: whether the plugin may derive values from its parameters alone. If `false`, a generator that
    /// declares no random bits is rejected. Generators that declare random bits are always tested for them.
    #[serde(default)]
    pub(crate) derived: bool,
    /// The limits of each call.
    #[serde(default)]
    pub(crate) limits: Limits,
}

/// Reads a table with arbitrary keys as a JSON object, and applies the rules of [`keywright_json::check`].
fn json_settings<'de, D: Deserializer<'de>>(from: D) -> Result<Map<String, Value>, D::Error> {
    let settings = json(toml::Value::deserialize(from)?).map_err(D::Error::custom)?;
    keywright_json::check(&settings.to_string()).map_err(D::Error::custom)?;
    match settings {
        Value::Object(fields) => Ok(fields),
        _ => Err(D::Error::custom("must be a table")),
    }
}

fn json(value: toml::Value) -> Result<Value, &'static str> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Float(number) if number.is_finite() => number.into(),
        toml::Value::Float(_) => return Err("infinity and NaN are not allowed"),
        toml::Value::Datetime(_) => return Err("dates and times must be strings"),
        toml::Value::Array(items) => items.into_iter().map(json).collect::<Result<_, _>>()?,
        toml::Value::Table(table) => {
            let fields = table.into_iter();
            let fields = fields.map(|(key, value)| json(value).map(|value| (key, value)));
            Value::Object(fields.collect::<Result<_, _>>()?)
        }
    })
}

/// The required signature of a component.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignatureConfig {
    /// The minisign public key that must have signed the component: the second line of `minisign.pub`. The signature of
    /// a file is next to it, in `FILE.minisig`.
    minisign_public_key: Option<String>,
    /// The file with the cosign public key that must have signed the component's manifest, P-256 in PEM. Only for
    /// components in a registry.
    cosign_public_key: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum ComponentLocation {
    File(PathBuf),
    Registry(PinnedReference),
}

impl Section for SandboxConfig {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.cache_directory]
    }
}

/// Returns the setting that contradicts another, with the reason.
pub(crate) fn queue_mistake(plugins: &SandboxConfig) -> Option<(String, String)> {
    let part = plugins.queue_length_per_actor_max?;
    let whole = plugins.queue_length.count();
    (part.get() > whole).then(|| {
        let setting = "plugins.queue_length_per_actor_max".to_owned();
        let what = format!("must be at most plugins.queue_length ({whole}), not {part}");
        (setting, what)
    })
}

impl Section for PluginConfig {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        let component = match &mut self.component {
            ComponentLocation::File(path) => Some(path),
            ComponentLocation::Registry(_) => None,
        };
        let signature = self.signature.as_mut();
        let key = signature.and_then(|signature| signature.cosign_public_key.as_mut());
        component.into_iter().chain(key).collect()
    }
}

impl SignatureConfig {
    pub(crate) fn key(&self) -> Result<SignatureKey, StartupError> {
        match (&self.minisign_public_key, &self.cosign_public_key) {
            (Some(key), None) => MinisignKey::read(key)
                .map(SignatureKey::Minisign)
                .while_doing("minisign_public_key"),
            (None, Some(file)) => cosign_key(file),
            _ => Err(StartupError::new(
                "exactly one of minisign_public_key and cosign_public_key is required",
            )),
        }
    }
}

fn cosign_key(file: &Path) -> Result<SignatureKey, StartupError> {
    let doing = "cosign_public_key: reading";
    let pem = read_text(file).on_file(doing, file)?;
    CosignKey::read(&pem)
        .map(SignatureKey::Cosign)
        .on_file(doing, file)
}

impl TryFrom<String> for ComponentLocation {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if is_reference(&text) {
            let parsed = text.parse().map(Self::Registry);
            return parsed.map_err(|refused: ReferenceError| refused.to_string());
        }
        if text.is_empty() {
            return Err("must not be empty".to_owned());
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(format!(
                "components can't be loaded over {scheme}; name a file or an oci:// reference"
            ));
        }
        Ok(Self::File(PathBuf::from(text)))
    }
}

impl fmt::Display for ComponentLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(formatter),
            Self::Registry(reference) => reference.fmt(formatter),
        }
    }
}

/// The registries from which components are pulled.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RegistryConfig {
    /// Maximum size of a component to pull.
    pub(crate) component_bytes_max: Number<1, COMPONENT_BYTES_MAX, COMPONENT_BYTES_MAX>,
    /// Maximum time to pull a component and its signature.
    pub(crate) fetch_seconds_max: Number<1, 3_600, 120>,
    /// A Docker login file such as `~/.docker/config.json`, with users and passwords for registries without `user`
    /// here. Credential helpers are not called.
    pub(crate) docker_config: Option<PathBuf>,
    /// Registries with settings of their own.
    pub(crate) hosts: Vec<RegistryHostConfig>,
}

/// One registry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegistryHostConfig {
    /// The registry's host, with the port if references have one: `HOST` or `HOST:PORT`.
    #[schemars(with = "String")]
    pub(crate) host: RegistryHost,
    /// The user to log in as.
    pub(crate) user: Option<String>,
    /// The file that contains the user's password or access token. A trailing line break is ignored.
    pub(crate) password_file: Option<PathBuf>,
    /// The file with the CA certificates to trust (PEM) instead of the platform's, for the registry and for hosts it
    /// redirects to.
    pub(crate) trusted_authorities: Option<PathBuf>,
    /// Whether to use plain HTTP, which protects nothing in transit. By default, only for registries on this machine:
    /// `localhost` and loopback addresses.
    pub(crate) plain_http: Option<bool>,
}

impl Section for RegistryConfig {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        let hosts = self.hosts.iter_mut().flat_map(|known| {
            let files = [&mut known.password_file, &mut known.trusted_authorities];
            files.into_iter().flatten()
        });
        self.docker_config.iter_mut().chain(hosts).collect()
    }
}

impl RegistryConfig {
    pub(crate) fn limits(&self) -> PullLimits {
        PullLimits {
            component_bytes_max: self.component_bytes_max.number(),
            deadline: self.fetch_seconds_max.seconds(),
        }
    }

    /// Creates a client for a registry, without sending a request.
    pub(crate) fn registry(&self, host: &RegistryHost) -> Result<Registry, StartupError> {
        Registry::new(host, self.access(host)?).while_doing(format!("using the registry {host}"))
    }

    /// Returns the configured access to a registry.
    fn access(&self, host: &RegistryHost) -> Result<Access, StartupError> {
        let mut named = self.hosts.iter().filter(|known| known.host == *host);
        let mut access = match (named.next(), named.next()) {
            (None, _) => Access {
                is_plain: host.is_loopback(),
                ..Access::default()
            },
            (Some(known), None) => known.access()?,
            (Some(_), Some(_)) => {
                return Err(StartupError::new(format!(
                    "registry.hosts: the host {host} is configured more than once"
                )));
            }
        };
        if access.credentials.is_none()
            && let Some((file, docker)) = self.read_docker_config()?
        {
            access.credentials = docker
                .credentials(host)
                .on_file(READING_DOCKER_CONFIG, file)?;
        }
        Ok(access)
    }

    /// Reads the configured Docker login file.
    fn read_docker_config(&self) -> Result<Option<(&Path, DockerConfig)>, StartupError> {
        let Some(file) = self.docker_config.as_deref() else {
            return Ok(None);
        };
        let text = SecretSource::File(file).read_while(READING_DOCKER_CONFIG)?;
        let docker = DockerConfig::read(&text).on_file(READING_DOCKER_CONFIG, file)?;
        Ok(Some((file, docker)))
    }

    /// Checks the section. No request is sent.
    pub(crate) fn check(&self, findings: &mut Findings) {
        if let Some(file) = &self.docker_config {
            findings.ok_or_report(DOCKER_CONFIG, self.read_docker_config());
            findings.warn_if_world_accessible(DOCKER_CONFIG, file);
        }
        for (index, known) in self.hosts.iter().enumerate() {
            let setting = format!("registry.hosts[{index}]");
            // A mistake in the Docker login file is reported once.
            let checked = if findings.has_mistake(DOCKER_CONFIG) {
                known.access().map(drop)
            } else {
                self.registry(&known.host).map(drop)
            };
            findings.ok_or_report(&setting, checked);
            if let Some(file) = &known.password_file {
                findings.warn_if_world_accessible(&format!("{setting}.password_file"), file);
            }
            let has_password = |access: Access| access.credentials.is_some() && access.is_plain;
            if !known.host.is_loopback() && self.access(&known.host).is_ok_and(has_password) {
                let what = "sends the password unencrypted over the network";
                findings.warning(format!("{setting}.plain_http"), what);
            }
        }
    }
}

impl RegistryHostConfig {
    fn access(&self) -> Result<Access, StartupError> {
        let missing = |setting: &str, given: &str| {
            StartupError::new(format!("{setting}: is required, because {given} is set"))
        };
        let credentials = match (&self.user, &self.password_file) {
            (Some(user), Some(file)) => {
                let password = SecretSource::File(file).read_while("reading the password file")?;
                Some(
                    Credentials::new(user.clone(), password)
                        .while_doing(format!("logging in at {}", self.host))?,
                )
            }
            (None, None) => None,
            (Some(_), None) => return Err(missing("password_file", "user")),
            (None, Some(_)) => return Err(missing("user", "password_file")),
        };
        let authorities = self.trusted_authorities.as_deref();
        Ok(Access {
            credentials,
            trusted_certificates_pem: authorities
                .map(read_authorities)
                .transpose()
                .while_doing("trusted_authorities")?,
            is_plain: self.plain_http.unwrap_or_else(|| self.host.is_loopback()),
        })
    }
}

fn read_authorities(path: &Path) -> Result<String, StartupError> {
    read_trusted_authorities("the registry", path)
}

const DOCKER_CONFIG: &str = "registry.docker_config";

const READING_DOCKER_CONFIG: &str = "reading the Docker login file";

#[cfg(test)]
mod tests {
    use figment::{
        Figment,
        providers::{Format, Toml},
    };

    use super::*;

    #[test]
    fn the_rules_for_json_apply_to_settings() {
        let read = |settings: &str| {
            let text = format!("component = \"x\"\nsettings.{settings}");
            let read = Figment::from(Toml::string(&text)).extract::<PluginConfig>();
            read.map_err(|refused| refused.to_string())
        };
        let settings = read(r#"a = [1, -1, 1.5, true, { b = "c" }]"#).ok().unwrap();
        assert_eq!(settings.settings["a"][4]["b"], "c");
        let deep = format!(
            "{}a = {}{}",
            "a.".repeat(65),
            "[".repeat(65),
            "]".repeat(65)
        );
        for (settings, words) in [
            (r#"a."$serde_json::private::RawValue" = "1""#, "reserved"),
            ("a = [1979-05-27]", "dates and times must be strings"),
            ("a = nan", "infinity and NaN are not allowed"),
            (&deep, "nested more than 128 levels deep"),
        ] {
            let refused = read(settings).err().unwrap();
            assert!(refused.contains(words), "{settings}: {refused}");
        }
    }
}
