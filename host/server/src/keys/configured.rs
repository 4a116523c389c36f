//! The secrets of the configured keys.

use std::{fs, sync::Arc};

use keywright_crypto::{
    ConfiguredKey, ConfiguredKeys, KeySource, PASSWORD_ITERATIONS_MIN, WrappingKey,
};
use keywright_kms::{KeyManagementPlugin, PluginSettings};

use crate::{
    config::{EncryptionConfig, KeyConfig, KeyOrigin, PluginAddress, SecretKind},
    started::StartRefused,
};

/// Reads the configured keys, and connects to their key management plugins.
pub(super) async fn configured_keys(
    config: &EncryptionConfig,
) -> Result<Arc<ConfiguredKeys>, StartRefused> {
    let mut keys = Vec::with_capacity(config.keys.len());
    for (place, key) in config.keys.iter().enumerate() {
        let number = place + 1;
        let key = read(key, number).await.map_err(|cause| {
            StartRefused::while_doing(format!("reading the encryption key {number}"), cause)
        })?;
        keys.push(key);
    }
    let keys = ConfiguredKeys::new(keys).map_err(|cause| {
        StartRefused::while_doing("using the configured encryption keys", cause)
    })?;
    Ok(Arc::new(keys))
}

async fn read(config: &KeyConfig, number: usize) -> Result<ConfiguredKey, StartRefused> {
    let origin = config.origin()?;
    let source = match &origin {
        KeyOrigin::Plugin(address) => {
            let plugin = KeyManagementPlugin::connect(settings(address)?).await;
            let plugin = plugin.map_err(|cause| {
                StartRefused::while_doing("connecting to a key management plugin", cause)
            })?;
            wrapping_key(address, plugin)
        }
        KeyOrigin::Secret(..) => source_of(&origin)?,
    };
    if let KeySource::Password { password, .. } = &source {
        warn_if_short(password.expose(), number);
    }
    Ok(ConfiguredKey {
        source,
        is_active: config.active,
    })
}

/// Returns the source of a key. Key management plugins are not called.
///
/// # Errors
/// If a secret is missing or invalid.
pub(crate) fn source_of(origin: &KeyOrigin<'_>) -> Result<KeySource, StartRefused> {
    match origin {
        KeyOrigin::Plugin(address) => {
            let plugin = KeyManagementPlugin::new(settings(address)?);
            let plugin = plugin.map_err(|cause| {
                StartRefused::while_doing("using a key management plugin", cause)
            })?;
            Ok(wrapping_key(address, plugin))
        }
        KeyOrigin::Secret(SecretKind::Password, secret) => Ok(KeySource::Password {
            password: secret.read()?,
            iterations: PASSWORD_ITERATIONS_MIN,
        }),
        KeyOrigin::Secret(SecretKind::Raw, secret) => KeySource::raw_from_base64(&secret.read()?)
            .map_err(|cause| StartRefused::new(cause.to_string())),
    }
}

/// Reads the CAs trusted to sign a plugin's certificate, PEM, if configured.
pub(crate) fn read_authorities(
    address: &PluginAddress<'_>,
) -> Result<Option<Vec<u8>>, StartRefused> {
    let read = |path| {
        fs::read(path).map_err(|cause| {
            StartRefused::file(
                "reading the CAs trusted for the key management plugin",
                path,
                cause,
            )
        })
    };
    address.trusted_authorities.map(read).transpose()
}

fn settings(address: &PluginAddress<'_>) -> Result<PluginSettings, StartRefused> {
    Ok(PluginSettings {
        socket: address.socket.to_owned(),
        host: address.host.to_owned(),
        trusted_authorities_pem: read_authorities(address)?,
        deadline: PluginSettings::DEADLINE,
    })
}

fn wrapping_key(address: &PluginAddress<'_>, plugin: KeyManagementPlugin) -> KeySource {
    KeySource::Wrapped(WrappingKey {
        place: format!("the key management plugin at {}", address.socket.display()),
        service: Arc::new(plugin),
    })
}

/// Key stretching does not protect a password that is easy to guess.
fn warn_if_short(password: &str, number: usize) {
    let characters = password.chars().count();
    if characters < PASSWORD_CHARACTERS_ADVISED && characters > 0 {
        tracing::warn!(
            encryption.key_number = number,
            "an encryption password has fewer than {PASSWORD_CHARACTERS_ADVISED} characters: who has the database could guess it"
        );
    }
}

/// The length below which a password causes a warning. It is not an error, because existing deployments have such
/// passwords.
const PASSWORD_CHARACTERS_ADVISED: usize = 20;
