//! A plugin: its component, the signature it needs, and its grants.

use std::{
    borrow::Cow,
    fmt, fs,
    path::{Path, PathBuf},
};

use keywright_registry::{
    CosignKey, MinisignKey, PinnedReference, ReferenceMalformed, SignatureKey, is_reference,
};
use keywright_runtime::{Grant, Limits};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::started::StartRefused;

/// One plugin.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginConfig {
    /// The WebAssembly component: a file, or `oci://HOST[:PORT]/REPOSITORY[:TAG]@sha256:DIGEST` with the digest of the
    /// manifest in a registry. The tag is only informational.
    pub(crate) component: ComponentLocation,
    /// The required SHA-256 of the component, in lower-case hexadecimal. Without it, any is accepted.
    #[serde(default)]
    pub(crate) sha256: Option<String>,
    /// The required signature of the component: one of the two keys. Without it, signatures are not checked.
    #[serde(default)]
    pub(crate) signature: Option<SignatureConfig>,
    /// Settings passed to the plugin with each call; the plugin's documentation describes them. They may contain
    /// secrets, and are never shown.
    #[serde(default, deserialize_with = "keywright_json::deserialize_object")]
    pub(crate) settings: Map<String, Value>,
    /// Host interfaces that the plugin may use. A plugin that imports others is rejected.
    #[serde(default)]
    pub(crate) grants: Vec<Grant>,
    /// Whether the plugin may derive values from its parameters alone. A generator that declares its values not random
    /// is rejected without this. All others are always tested for the random bits they declare.
    #[serde(default)]
    pub(crate) derived: bool,
    /// The limits of each call.
    #[serde(default)]
    pub(crate) limits: Limits,
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

/// The location of a component.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum ComponentLocation {
    /// A file.
    File(PathBuf),
    /// A registry.
    Registry(PinnedReference),
}

impl PluginConfig {
    /// Returns the configured paths.
    pub(crate) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let component = match &mut self.component {
            ComponentLocation::File(path) => Some(path),
            ComponentLocation::Registry(_) => None,
        };
        let signature = self.signature.as_mut();
        let key = signature.and_then(|signature| signature.cosign_public_key.as_mut());
        component.into_iter().chain(key)
    }
}

impl fmt::Debug for PluginConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PluginConfig")
            .field("component", &self.component)
            .field("sha256", &self.sha256)
            .field("signature", &self.signature)
            .field("grants", &self.grants)
            .field("derived", &self.derived)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl SignatureConfig {
    /// Returns the configured key.
    ///
    /// # Errors
    /// If not exactly one key is configured, or it is malformed.
    pub(crate) fn key(&self) -> Result<SignatureKey, StartRefused> {
        match (&self.minisign_public_key, &self.cosign_public_key) {
            (Some(key), None) => MinisignKey::read(key)
                .map(SignatureKey::Minisign)
                .map_err(|cause| StartRefused::while_doing("reading minisign_public_key", cause)),
            (None, Some(file)) => cosign_key(file),
            _ => Err(StartRefused::new(
                "a signature needs either minisign_public_key or cosign_public_key",
            )),
        }
    }
}

fn cosign_key(file: &Path) -> Result<SignatureKey, StartRefused> {
    let doing = "reading the public key";
    let pem = fs::read_to_string(file).map_err(|cause| StartRefused::file(doing, file, cause))?;
    CosignKey::read(&pem)
        .map(SignatureKey::Cosign)
        .map_err(|cause| StartRefused::file(doing, file, cause))
}

impl TryFrom<String> for ComponentLocation {
    type Error = ReferenceMalformed;

    fn try_from(text: String) -> Result<Self, ReferenceMalformed> {
        if is_reference(&text) {
            return text.parse().map(Self::Registry);
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

impl JsonSchema for ComponentLocation {
    fn schema_name() -> Cow<'static, str> {
        "ComponentLocation".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(config: &Value) -> Result<PluginConfig, String> {
        serde_json::from_value(config.clone()).map_err(|cause| cause.to_string())
    }

    #[test]
    fn a_component_path_is_the_only_required_setting() {
        let plugin = read(&json!({"component": "p.wasm"})).unwrap();
        assert!(matches!(plugin.component, ComponentLocation::File(_)));
        assert_eq!(plugin.limits, Limits::default());
        assert!(plugin.grants.is_empty() && plugin.settings.is_empty() && plugin.sha256.is_none());
        assert!(!plugin.derived && plugin.signature.is_none());
    }

    #[test]
    fn unknown_settings_are_rejected() {
        for config in [
            json!({"component": "p.wasm", "memory": 1}),
            json!({"component": "p.wasm", "limits": {"fuel": 1}}),
            json!({"component": "p.wasm", "grants": ["network"]}),
            json!({"component": "p.wasm", "signature": {"key": "k"}}),
        ] {
            assert!(read(&config).is_err(), "{config}");
        }
    }

    #[test]
    fn a_reference_without_a_digest_is_rejected_with_a_remedy() {
        let refused = read(&json!({"component": "oci://h/a:1.0"})).unwrap_err();
        assert!(refused.contains("it has no digest"), "{refused}");
        assert!(refused.contains("keywright plugin push"), "{refused}");
    }

    #[test]
    fn a_signature_has_exactly_one_key() {
        for (signature, expected) in [
            (json!({}), "needs either"),
            (
                json!({"minisign_public_key": "k", "cosign_public_key": "f"}),
                "needs either",
            ),
            (
                json!({"minisign_public_key": "k"}),
                "must be a minisign public key",
            ),
            (json!({"cosign_public_key": "nowhere"}), "nowhere"),
        ] {
            let plugin = read(&json!({"component": "p.wasm", "signature": signature})).unwrap();
            let refused = plugin.signature.unwrap().key().err().unwrap().with_causes();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn debug_leaves_the_settings_out() {
        let config = json!({"component": "p.wasm", "settings": {"token": "hunter2"}});
        let plugin = read(&config).unwrap();
        assert!(!format!("{plugin:?}").contains("hunter2"));
    }
}
