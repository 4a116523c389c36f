//! Manifests: of components as the CNCF's layout for WebAssembly has them, and of signatures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Digest, Fault};

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
}

/// What a manifest names.
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
    /// Reads a manifest.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let manifest: Self = keywright_json::read_bytes(bytes).map_err(|_| {
            Fault::ManifestMalformed("is none of an image: an index of several is not taken")
        })?;
        let media_type = manifest.media_type.as_deref();
        if manifest.schema_version != 2 || media_type.is_some_and(|named| named != MEDIA_TYPE) {
            return Err(Fault::ManifestMalformed(
                "is of another type than an OCI image's",
            ));
        }
        Ok(manifest)
    }

    /// The component.
    ///
    /// # Errors
    /// When it has another layout than a component.
    pub(crate) fn component(&self) -> Result<&Descriptor, Fault> {
        if self.config.media_type != CONFIG_MEDIA_TYPE {
            return Err(Fault::ManifestMalformed(
                "is not of a WebAssembly component: its configuration is not of the type application/vnd.wasm.config.v0+json",
            ));
        }
        match self.layers.as_slice() {
            [layer] if layer.media_type == COMPONENT_MEDIA_TYPE => Ok(layer),
            [_] => Err(Fault::ManifestMalformed(
                "is not of a WebAssembly component: its layer is not of the type application/wasm",
            )),
            _ => Err(Fault::ManifestMalformed(
                "is not of one WebAssembly component: it must have exactly one layer",
            )),
        }
    }

    /// The manifest of a component with this configuration.
    pub(crate) fn of_component(config: &[u8], component: &[u8]) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(MEDIA_TYPE.to_owned()),
            artifact_type: None,
            config: Descriptor::of(CONFIG_MEDIA_TYPE, config),
            layers: vec![Descriptor::of(COMPONENT_MEDIA_TYPE, component)],
        }
    }

    /// The manifest of a minisign signature.
    pub(crate) fn of_minisign_signature(signature: &[u8]) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(MEDIA_TYPE.to_owned()),
            artifact_type: Some(MINISIGN_MEDIA_TYPE.to_owned()),
            config: Descriptor::of(EMPTY_MEDIA_TYPE, EMPTY),
            layers: vec![Descriptor::of(MINISIGN_MEDIA_TYPE, signature)],
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

    /// Whether the descriptor states the size of these bytes.
    pub(crate) fn is_of_size(&self, bytes: &[u8]) -> bool {
        u64::try_from(bytes.len()).is_ok_and(|size| size == self.size)
    }

    /// The digest.
    ///
    /// # Errors
    /// When it is none that is known here.
    pub(crate) fn digest(&self) -> Result<Digest, Fault> {
        let malformed =
            |_| Fault::ManifestMalformed("names something by a digest that is no SHA-256");
        self.digest.parse().map_err(malformed)
    }
}

/// The configuration of a component, which says what its layer is. It has no time of its own in it, so that the same
/// component has the same manifest whenever it is pushed.
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

/// The type of an image's manifest.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The type of a component's configuration (CNCF, "Wasm OCI Artifact layout").
const CONFIG_MEDIA_TYPE: &str = "application/vnd.wasm.config.v0+json";
/// The type of a component.
const COMPONENT_MEDIA_TYPE: &str = "application/wasm";
/// The type of a minisign signature.
pub(crate) const MINISIGN_MEDIA_TYPE: &str = "application/vnd.keywright.minisign.signature.v1";
/// The type of a configuration that says nothing (OCI image specification 1.1, "Guidance for an empty descriptor").
const EMPTY_MEDIA_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// A configuration that says nothing.
pub(crate) const EMPTY: &[u8] = b"{}";

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn changed(change: impl Fn(&mut Value)) -> Result<Digest, Fault> {
        let mut manifest = serde_json::to_value(Manifest::of_component(b"{}", b"wasm")).unwrap();
        change(&mut manifest);
        let manifest = Manifest::read(manifest.to_string().as_bytes())?;
        manifest.component()?.digest()
    }

    #[test]
    fn a_component_is_found_by_its_digest() {
        assert_eq!(changed(|_| {}).unwrap(), Digest::of(b"wasm"));
        let anonymous = |manifest: &mut Value| {
            manifest.as_object_mut().unwrap().remove("mediaType");
        };
        assert_eq!(changed(anonymous).unwrap(), Digest::of(b"wasm"));
    }

    #[test]
    fn what_has_another_layout_is_refused() {
        let index = json!({"schemaVersion": 2, "manifests": []});
        let image = "application/vnd.oci.image.config.v1+json";
        for (pointer, value, told) in [
            ("", index, "an index of several is not taken"),
            ("/schemaVersion", json!(1), "of another type"),
            ("/mediaType", json!("application/json"), "of another type"),
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
            ("/layers/0/digest", json!("sha512:00"), "no SHA-256"),
        ] {
            let fault = changed(|manifest| *manifest.pointer_mut(pointer).unwrap() = value.clone());
            let fault = fault.unwrap_err().to_string();
            assert!(fault.contains(told), "{fault}");
        }
        let two = changed(|manifest| {
            let layers = manifest["layers"].as_array_mut().unwrap();
            layers.push(layers[0].clone());
        });
        assert!(two.unwrap_err().to_string().contains("exactly one layer"));
    }
}
