//! The keys that encrypt what is stored.

use std::{
    fs,
    path::{Path, PathBuf},
};

use keywright_core::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::RotationConfig;
use crate::started::StartRefused;

/// The keys that encrypt what is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EncryptionConfig {
    /// The keys. Exactly one is active: it encrypts what is new. The others decrypt what they have encrypted.
    pub(crate) keys: Vec<KeyConfig>,
    /// Whether this server makes the record of an active key that was never active before. Otherwise it waits until another
    /// server has made it.
    #[serde(default = "key_creation_enabled")]
    pub(crate) key_creation_enabled: bool,
    /// How long it waits for that, in seconds, before it refuses to start.
    #[serde(default = "key_wait_seconds_max")]
    pub(crate) key_wait_seconds_max: u32,
    /// How what other keys encrypt comes under the active one.
    #[serde(default)]
    pub(crate) rotation: RotationConfig,
}

/// One key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyConfig {
    /// What the secret is.
    provider: KeyProvider,
    /// The file that holds the password or the raw key. A line break at its end is no part of it. Either this or
    /// `environment`.
    file: Option<PathBuf>,
    /// The variable of the environment that holds the password or the raw key. Either this or `file`.
    environment: Option<String>,
    /// The Unix socket of the key management plugin, for the provider `kms`.
    socket: Option<PathBuf>,
    /// The host that the plugin is asked for and that its certificate must name; `localhost` where nothing is said.
    host: Option<String>,
    /// The certificates of the authorities that are trusted to sign the plugin's, PEM. Without them, the socket is used
    /// without TLS.
    trusted_authorities: Option<PathBuf>,
    /// Whether new values are encrypted with this key.
    #[serde(default)]
    pub(crate) active: bool,
}

/// What a key's secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum KeyProvider {
    /// A password, from which the key is derived with a salt that is stored.
    Password,
    /// The key itself: 32 bytes in base64.
    Raw,
    /// A key that a key management plugin has encrypted, and decrypts at every start. It is made by the server.
    Kms,
}

/// Where a key comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyOrigin<'a> {
    /// A key management plugin unwraps it.
    Plugin(PluginAddress<'a>),
    /// It is made of a secret.
    Secret(SecretKind, SecretSource<'a>),
}

/// What a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretKind {
    /// A password, from which the key is derived.
    Password,
    /// The key itself.
    Raw,
}

/// Where a key management plugin is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PluginAddress<'a> {
    /// Its Unix socket.
    pub(crate) socket: &'a Path,
    /// The host that it is asked for.
    pub(crate) host: &'a str,
    /// The file with the authorities that its certificate must come from; without it, there is no TLS.
    pub(crate) trusted_authorities: Option<&'a Path>,
}

/// Where a secret is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SecretSource<'a> {
    /// In this variable of the environment.
    Environment(&'a str),
    /// In this file. A line break at its end is no part of the secret.
    File(&'a Path),
}

impl EncryptionConfig {
    /// The files that are named.
    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.keys.iter_mut().flat_map(|key| {
            let files = [&mut key.file, &mut key.socket, &mut key.trusted_authorities];
            files.into_iter().flatten()
        })
    }
}

impl KeyConfig {
    /// Where the key comes from.
    pub(crate) fn origin(&self) -> Result<KeyOrigin<'_>, StartRefused> {
        let kind = match self.provider {
            KeyProvider::Kms => return self.plugin().map(KeyOrigin::Plugin),
            KeyProvider::Password => SecretKind::Password,
            KeyProvider::Raw => SecretKind::Raw,
        };
        if self.socket.is_some() || self.host.is_some() || self.trusted_authorities.is_some() {
            return Err(StartRefused::new(
                "socket, host and trusted_authorities belong to the provider kms alone",
            ));
        }
        match (&self.file, &self.environment) {
            (Some(file), None) => Ok(KeyOrigin::Secret(kind, SecretSource::File(file))),
            (None, Some(name)) => Ok(KeyOrigin::Secret(kind, SecretSource::Environment(name))),
            _ => Err(StartRefused::new(
                "an encryption key must name either a file or a variable of the environment",
            )),
        }
    }

    fn plugin(&self) -> Result<PluginAddress<'_>, StartRefused> {
        if self.file.is_some() || self.environment.is_some() {
            return Err(StartRefused::new(
                "the provider kms has no secret, so file and environment do not belong to it",
            ));
        }
        let socket = self.socket.as_deref().ok_or_else(|| {
            StartRefused::new("the provider kms needs the socket of a key management plugin")
        })?;
        Ok(PluginAddress {
            socket,
            host: self.host.as_deref().unwrap_or("localhost"),
            trusted_authorities: self.trusted_authorities.as_deref(),
        })
    }
}

impl SecretSource<'_> {
    /// Reads the secret.
    ///
    /// # Errors
    /// When it is not there.
    pub(crate) fn read(self) -> Result<Secret, StartRefused> {
        match self {
            Self::Environment(name) => std::env::var(name).map(Secret::new).map_err(|_| {
                StartRefused::new(format!("the variable {name} of the environment is not set"))
            }),
            Self::File(path) => {
                let text = fs::read_to_string(path)
                    .map(Zeroizing::new)
                    .map_err(|cause| StartRefused::file("reading a secret", path, cause))?;
                Ok(Secret::new(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
        }
    }
}

fn key_creation_enabled() -> bool {
    true
}

fn key_wait_seconds_max() -> u32 {
    600
}
