//! Manifests of components (CNCF layout for WebAssembly) and of minisign signatures, and pulling the blobs that they describe.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::json;

use crate::{Digest, Registry, RegistryError};

/// A manifest (OCI image specification 1.1, "Image Manifest").
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    /// The list of an image index. A manifest that has both can be read in two ways (CVE-2021-41190).
    #[serde(default, skip_serializing)]
    manifests: Option<IgnoredAny>,
}

/// A reference from a manifest to a blob.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    digest: String,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Manifest {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, RegistryError> {
        let manifest: Self = keywright_json::read_bytes(bytes).map_err(|_| {
            RegistryError::manifest("is not an image manifest (image indexes are not supported)")
        })?;
        let media_type = manifest.media_type.as_deref();
        if manifest.schema_version != 2
            || media_type.is_some_and(|named| named != MEDIA_TYPE)
            || manifest.manifests.is_some()
        {
            return Err(RegistryError::manifest(
                "does not have the type of an OCI image manifest",
            ));
        }
        Ok(manifest)
    }

    pub(crate) fn component(&self) -> Result<&Descriptor, RegistryError> {
        let reason = match self.layers.as_slice() {
            _ if self.config.media_type != CONFIG_MEDIA_TYPE => {
                format!("its configuration is not of the type {CONFIG_MEDIA_TYPE}")
            }
            [layer] if layer.media_type == COMPONENT_MEDIA_TYPE => return Ok(layer),
            [_] => format!("its layer is not of the type {COMPONENT_MEDIA_TYPE}"),
            _ => "it must have exactly one layer".to_owned(),
        };
        Err(RegistryError::manifest(&format!(
            "does not describe a WebAssembly component: {reason}"
        )))
    }

    pub(crate) fn of_component(config: &[u8], component: &[u8]) -> Self {
        let config = Descriptor::of(CONFIG_MEDIA_TYPE, config);
        Self::of(
            None,
            config,
            Descriptor::of(COMPONENT_MEDIA_TYPE, component),
        )
    }

    pub(crate) fn of_minisign_signature(signature: &[u8]) -> Self {
        let config = Descriptor::of(EMPTY_MEDIA_TYPE, EMPTY);
        let layer = Descriptor::of(MINISIGN_MEDIA_TYPE, signature);
        Self::of(Some(MINISIGN_MEDIA_TYPE.to_owned()), config, layer)
    }

    fn of(artifact_type: Option<String>, config: Descriptor, layer: Descriptor) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(MEDIA_TYPE.to_owned()),
            artifact_type,
            config,
            layers: vec![layer],
            manifests: None,
        }
    }
}

impl Descriptor {
    fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes).to_string(),
            size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            annotations: BTreeMap::new(),
        }
    }

    /// Returns whether the descriptor states the size of these bytes.
    pub(crate) fn is_of_size(&self, bytes: &[u8]) -> bool {
        u64::try_from(bytes.len()).is_ok_and(|size| size == self.size)
    }

    pub(crate) fn digest(&self) -> Result<Digest, RegistryError> {
        let malformed = |_| RegistryError::manifest("contains a digest other than SHA-256");
        self.digest.parse().map_err(malformed)
    }
}

/// Pulls a blob and verifies its digest and size against its descriptor.
pub(crate) async fn blob(
    registry: &Registry,
    repository: &str,
    descriptor: &Descriptor,
    resource: &'static str,
    bytes_max: u64,
) -> Result<Vec<u8>, RegistryError> {
    if descriptor.size > bytes_max {
        return Err(RegistryError::too_large(resource, bytes_max));
    }
    let digest = descriptor.digest()?;
    let url = registry.url(repository, &format!("blobs/{digest}"));
    let bytes = registry.get(url, resource, None, bytes_max).await?;
    let bytes = verified(bytes, resource, &digest)?;
    if descriptor.is_of_size(&bytes) {
        return Ok(bytes);
    }
    Err(RegistryError::Failed(format!(
        "{resource} has {} bytes, but its descriptor states {}; push the component again with a tool that writes correct sizes",
        bytes.len(),
        descriptor.size
    )))
}

pub(crate) fn verified(
    bytes: Vec<u8>,
    resource: &'static str,
    digest: &Digest,
) -> Result<Vec<u8>, RegistryError> {
    let found = Digest::of(&bytes);
    if found == *digest {
        return Ok(bytes);
    }
    Err(RegistryError::Failed(format!(
        "{resource} has the digest {found}, expected {digest}; the registry's data is corrupt or was tampered with"
    )))
}

/// Builds the configuration of a component. Its creation time is constant, so that pushing a component again produces the same
/// manifest.
pub(crate) fn component_config(
    component: &[u8],
    exports: &[String],
    imports: &[String],
) -> Vec<u8> {
    let config = json!({
        "created": "1970-01-01T00:00:00Z",
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [Digest::of(component).to_string()],
        "component": {"exports": exports, "imports": imports},
    });
    config.to_string().into_bytes()
}

pub(crate) const MEDIA_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of a component's configuration (CNCF, "Wasm OCI Artifact layout").
const CONFIG_MEDIA_TYPE: &str = "application/vnd.wasm.config.v0+json";
const COMPONENT_MEDIA_TYPE: &str = "application/wasm";
pub(crate) const MINISIGN_MEDIA_TYPE: &str = "application/vnd.keywright.minisign.signature.v1";
/// The media type of an empty configuration (OCI image specification 1.1, "Guidance for an empty descriptor").
const EMPTY_MEDIA_TYPE: &str = "application/vnd.oci.empty.v1+json";
pub(crate) const EMPTY: &[u8] = b"{}";
/// The largest manifest, in bytes. A component's manifest has some hundred bytes.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 256 * 1024;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn changed(change: impl Fn(&mut Value)) -> Result<Digest, RegistryError> {
        let mut manifest = serde_json::to_value(Manifest::of_component(b"{}", b"wasm")).unwrap();
        change(&mut manifest);
        let manifest = Manifest::read(manifest.to_string().as_bytes())?;
        manifest.component()?.digest()
    }

    #[test]
    fn component_digest_is_read_with_or_without_media_type() {
        assert_eq!(changed(|_| {}).unwrap(), Digest::of(b"wasm"));
        let anonymous = |manifest: &mut Value| {
            manifest.as_object_mut().unwrap().remove("mediaType");
        };
        assert_eq!(changed(anonymous).unwrap(), Digest::of(b"wasm"));
    }

    #[test]
    fn other_layouts_are_rejected() {
        let index = json!({"schemaVersion": 2, "manifests": []});
        let image = "application/vnd.oci.image.config.v1+json";
        for (pointer, value, expected) in [
            ("", index, "image indexes are not supported"),
            ("/schemaVersion", json!(1), "does not have the type"),
            (
                "/mediaType",
                json!("application/json"),
                "does not have the type",
            ),
            (
                "/config/mediaType",
                json!(image),
                "its configuration is not",
            ),
            ("/layers", json!([]), "exactly one layer"),
            (
                "/layers/0/mediaType",
                json!("text/plain"),
                "its layer is not",
            ),
            ("/layers/0/digest", json!("sha512:00"), "other than SHA-256"),
        ] {
            let fault = changed(|manifest| *manifest.pointer_mut(pointer).unwrap() = value.clone());
            let fault = fault.unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
        let two = changed(|manifest| {
            let layers = manifest["layers"].as_array_mut().unwrap();
            layers.push(layers[0].clone());
        });
        assert!(two.unwrap_err().to_string().contains("exactly one layer"));
    }
}
