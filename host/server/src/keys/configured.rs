//! The secrets of the configured keys.

use std::{fs, sync::Arc};

use keywright_crypto::{
    ConfiguredKey, ConfiguredKeys, KeySource, PASSWORD_ITERATIONS_MIN, WrappingKey,
};
use keywright_kms::{KeyManagementPlugin, PluginSettings};

use crate::{
    config::{EncryptionConfig, KeyConfig, KeyOrigin, KeyProvider, PluginAddress, SecretSource},
    started::StartRefused,
};

/// Reads what the configuration names, and asks the plugins that it names whether they are there.
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
    let source = match config.origin()? {
        KeyOrigin::Plugin(address) => KeySource::Wrapped(wrapping_key(&address).await?),
        KeyOrigin::Secret(secret) => read_secret(config.provider, secret)?,
    };
    if let KeySource::Password { password, .. } = &source {
        warn_if_short(password.expose(), number);
    }
    Ok(ConfiguredKey {
        source,
        is_active: config.active,
    })
}

/// Reads a key that is not a plugin's.
pub(crate) fn read_secret(
    provider: KeyProvider,
    secret: SecretSource<'_>,
) -> Result<KeySource, StartRefused> {
    let secret = secret.read()?;
    match provider {
        KeyProvider::Raw => KeySource::raw_from_base64(&secret)
            .map_err(|cause| StartRefused::new(cause.to_string())),
        KeyProvider::Kms | KeyProvider::Password => Ok(KeySource::Password {
            password: secret,
            iterations: PASSWORD_ITERATIONS_MIN,
        }),
    }
}

async fn wrapping_key(address: &PluginAddress<'_>) -> Result<WrappingKey, StartRefused> {
    let read_authorities = |path| {
        fs::read(path).map_err(|cause| {
            StartRefused::file(
                "reading the authorities that are trusted for the key management plugin",
                path,
                cause,
            )
        })
    };
    let trusted_authorities_pem = address
        .trusted_authorities
        .map(read_authorities)
        .transpose()?;
    let plugin = KeyManagementPlugin::connect(PluginSettings {
        socket: address.socket.to_owned(),
        host: address.host.to_owned(),
        trusted_authorities_pem,
        deadline: PluginSettings::DEADLINE,
    })
    .await
    .map_err(|cause| StartRefused::while_doing("asking a key management plugin", cause))?;
    Ok(WrappingKey {
        place: format!("the key management plugin at {}", address.socket.display()),
        service: Arc::new(plugin),
    })
}

/// A password is stretched, but one that can be guessed stays one that can be guessed.
fn warn_if_short(password: &str, number: usize) {
    let characters = password.chars().count();
    if characters < PASSWORD_CHARACTERS_ADVISED && characters > 0 {
        tracing::warn!(
            encryption.key_number = number,
            "an encryption password has fewer than {PASSWORD_CHARACTERS_ADVISED} characters: who has the database could guess it"
        );
    }
}

/// Below this, a password is warned of. It is not refused: deployments have their passwords already.
const PASSWORD_CHARACTERS_ADVISED: usize = 20;
