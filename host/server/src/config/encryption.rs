//! The keys that encrypt what is stored.

use std::{fs, path::PathBuf};

use keywright_core::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::started::StartRefused;

/// The keys that encrypt what is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EncryptionConfig {
    /// The keys. Exactly one is active: it encrypts what is new. The others decrypt what they have encrypted.
    pub(crate) keys: Vec<KeyConfig>,
}

/// One key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyConfig {
    /// What the secret is.
    pub(crate) provider: KeyProvider,
    /// The file that holds the secret. A line break at its end is no part of it. Either this or `environment`.
    file: Option<PathBuf>,
    /// The variable of the environment that holds the secret. Either this or `file`.
    environment: Option<String>,
    /// Whether new values are encrypted with this key.
    #[serde(default)]
    pub(crate) active: bool,
}

/// What a key's secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyProvider {
    /// A password, from which the key is derived with a salt that is stored.
    Password,
    /// The key itself: 32 bytes in base64.
    Raw,
}

/// Where a secret is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SecretSource<'a> {
    /// In this variable of the environment.
    Environment(&'a str),
    /// In this file. A line break at its end is no part of the secret.
    File(&'a PathBuf),
}

impl EncryptionConfig {
    /// The files that are named.
    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.keys.iter_mut().filter_map(|key| key.file.as_mut())
    }
}

impl KeyConfig {
    /// Where the key's secret is.
    pub(crate) fn source(&self) -> Result<SecretSource<'_>, StartRefused> {
        match (&self.file, &self.environment) {
            (Some(file), None) => Ok(SecretSource::File(file)),
            (None, Some(name)) => Ok(SecretSource::Environment(name)),
            _ => Err(StartRefused::new(
                "an encryption key must name either a file or a variable of the environment",
            )),
        }
    }
}

impl SecretSource<'_> {
    /// Reads the secret.
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
