//! The registries from which components are pulled.

use std::{borrow::Cow, fs, path::Path, path::PathBuf, str::FromStr};

use keywright_registry::{
    Access, Credentials, DockerConfig, PullLimits, ReferenceMalformed, Registry, RegistryHost,
};
use keywright_runtime::COMPONENT_BYTES_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::{SecretSource, number::Number};
use crate::started::StartRefused;

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
    host: HostName,
    /// The user to log in as.
    user: Option<String>,
    /// The file that contains the user's password or access token. A trailing line break is ignored.
    pub(crate) password_file: Option<PathBuf>,
    /// The file with the CA certificates to trust, PEM, instead of the platform's, for the registry and for hosts it
    /// redirects to.
    pub(crate) trusted_authorities: Option<PathBuf>,
    /// Whether to use plain HTTP, which protects nothing in transit. By default, only for registries on this machine:
    /// `localhost` and loopback addresses.
    plain_http: Option<bool>,
}

impl RegistryConfig {
    /// Returns the limits of a pull.
    pub(crate) fn limits(&self) -> PullLimits {
        PullLimits {
            component_bytes_max: u64::try_from(self.component_bytes_max.count())
                .unwrap_or(u64::MAX),
            deadline: self.fetch_seconds_max.seconds(),
        }
    }

    /// Creates a client for a registry, without sending a request.
    ///
    /// # Errors
    /// If a configured file is missing or invalid.
    pub(crate) fn registry(&self, host: &RegistryHost) -> Result<Registry, StartRefused> {
        let mut named = self.hosts.iter().filter(|known| known.host.0 == *host);
        let mut access = match (named.next(), named.next()) {
            (None, _) => Access {
                is_plain: host.is_loopback(),
                ..Access::default()
            },
            (Some(known), None) => known.access()?,
            (Some(_), Some(_)) => {
                return Err(StartRefused::new(format!(
                    "registry.hosts contains {host} more than once"
                )));
            }
        };
        if access.credentials.is_none()
            && let Some((file, docker)) = self.read_docker_config()?
        {
            access.credentials = docker
                .credentials(host)
                .map_err(|cause| StartRefused::file(READING_DOCKERS_FILE, file, cause))?;
        }
        Registry::new(host, access)
            .map_err(|cause| StartRefused::while_doing(format!("using the registry {host}"), cause))
    }

    /// Reads the configured Docker login file.
    ///
    /// # Errors
    /// If the file is missing or invalid.
    pub(crate) fn read_docker_config(&self) -> Result<Option<(&Path, DockerConfig)>, StartRefused> {
        let Some(file) = self.docker_config.as_deref() else {
            return Ok(None);
        };
        let text = SecretSource::File(file).read()?;
        let docker = DockerConfig::read(&text)
            .map_err(|cause| StartRefused::file(READING_DOCKERS_FILE, file, cause))?;
        Ok(Some((file, docker)))
    }

    /// Returns the configured paths.
    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let hosts = self.hosts.iter_mut().flat_map(|known| {
            let files = [&mut known.password_file, &mut known.trusted_authorities];
            files.into_iter().flatten()
        });
        self.docker_config.iter_mut().chain(hosts)
    }
}

impl RegistryHostConfig {
    /// A registry given by command-line arguments.
    pub(crate) fn of_arguments(
        host: RegistryHost,
        user: Option<String>,
        password_file: Option<PathBuf>,
        trusted_authorities: Option<PathBuf>,
        plain_http: Option<bool>,
    ) -> Self {
        Self {
            host: HostName(host),
            user,
            password_file,
            trusted_authorities,
            plain_http,
        }
    }

    pub(crate) fn host(&self) -> &RegistryHost {
        &self.host.0
    }

    /// Returns whether the password would be sent unencrypted over the network.
    pub(crate) fn exposes_password(&self) -> bool {
        self.user.is_some() && self.is_plain() && !self.host().is_loopback()
    }

    fn is_plain(&self) -> bool {
        self.plain_http.unwrap_or_else(|| self.host().is_loopback())
    }

    fn access(&self) -> Result<Access, StartRefused> {
        let credentials = match (&self.user, &self.password_file) {
            (Some(user), Some(file)) => {
                let password = SecretSource::File(file).read()?;
                Some(Credentials::new(user.clone(), password).map_err(|cause| {
                    StartRefused::while_doing(format!("logging in at {}", self.host()), cause)
                })?)
            }
            (None, None) => None,
            _ => {
                return Err(StartRefused::new(format!(
                    "for {}, user and password_file belong together",
                    self.host()
                )));
            }
        };
        let authorities = self.trusted_authorities.as_deref();
        Ok(Access {
            credentials,
            trusted_certificates_pem: authorities.map(read_authorities).transpose()?,
            is_plain: self.is_plain(),
        })
    }
}

fn read_authorities(path: &Path) -> Result<String, StartRefused> {
    fs::read_to_string(path).map_err(|cause| {
        StartRefused::file(
            "reading the authorities trusted for the registry",
            path,
            cause,
        )
    })
}

const READING_DOCKERS_FILE: &str = "reading the Docker login file";

/// The host of a registry, as text.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct HostName(RegistryHost);

impl TryFrom<String> for HostName {
    type Error = ReferenceMalformed;

    fn try_from(text: String) -> Result<Self, ReferenceMalformed> {
        RegistryHost::from_str(&text).map(Self)
    }
}

impl JsonSchema for HostName {
    fn schema_name() -> Cow<'static, str> {
        "HostName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}
