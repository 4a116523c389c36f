//! Pulling and pushing components.

use std::{path::Path, time::Duration};

use reqwest::{
    Method, StatusCode, Url,
    header::{CONTENT_TYPE, LOCATION},
};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    Cache, Digest, PinnedReference, PushTarget, Registry, RegistryError, SIGNATURE_EXTENSION,
    SignatureError, SignatureKey,
    cache::CacheEntry,
    manifest::{EMPTY, MANIFEST_BYTES_MAX, MEDIA_TYPE, Manifest, blob, component_config, verified},
    signature::{signature_of_file, tag},
};

const COMPONENT: &str = "the component";
const MANIFEST: &str = "the manifest";

/// Limits of one pull.
#[derive(Clone, Copy, Debug)]
pub struct PullLimits {
    /// The largest component, in bytes.
    pub component_bytes_max: u64,
    /// The longest time for the whole pull.
    pub deadline: Duration,
}

/// A verified component.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// The bytes of the component.
    pub component: Vec<u8>,
    /// Whether the cache had all files, so that no request was sent to the registry.
    pub was_cached: bool,
}

/// Pulls a component and verifies it, and also its signature if `key` is set. Requests no file that is in the cache.
pub async fn pull(
    registry: &Registry,
    reference: &PinnedReference,
    key: Option<&SignatureKey>,
    cache: &Cache,
    limits: PullLimits,
) -> Result<Pulled, RegistryError> {
    let (repository, digest) = (&reference.repository.name, &reference.digest);
    within(limits.deadline, async {
        let cached_manifest = cache.read_verified(CacheEntry::Manifest, digest, MANIFEST_BYTES_MAX);
        let mut was_cached = cached_manifest.is_some();
        let manifest = match cached_manifest {
            Some(manifest) => manifest,
            None => manifest(registry, repository, digest).await?,
        };
        let read = Manifest::read(&manifest)?;
        let layer = read.component()?;
        let layer_digest = layer.digest()?;
        let bytes_max = limits.component_bytes_max;
        let cached = cache.read_verified(CacheEntry::Component, &layer_digest, bytes_max);
        let cached = cached.filter(|component| layer.is_of_size(component));
        was_cached &= cached.is_some();
        let component = match cached {
            Some(component) => component,
            None => blob(registry, repository, layer, COMPONENT, bytes_max).await?,
        };
        if let Some(key) = key {
            was_cached &= key.verify(registry, reference, &component, cache).await?;
        }
        if !was_cached {
            cache.write(CacheEntry::Manifest, digest, &manifest);
            cache.write(CacheEntry::Component, &layer_digest, &component);
        }
        Ok(Pulled {
            component,
            was_cached,
        })
    })
    .await
}

/// Ends a transfer that exceeds its deadline.
async fn within<T>(
    deadline: Duration,
    transfer: impl Future<Output = Result<T, RegistryError>>,
) -> Result<T, RegistryError> {
    let seconds = deadline.as_secs();
    let too_slow = |_| RegistryError::Failed(format!("the transfer took longer than {seconds} s"));
    timeout(deadline, transfer).await.map_err(too_slow)?
}

async fn manifest(
    registry: &Registry,
    repository: &str,
    digest: &Digest,
) -> Result<Vec<u8>, RegistryError> {
    let url = registry.url(repository, &format!("manifests/{digest}"));
    let manifest = registry.get(url, MANIFEST, Some(MEDIA_TYPE), MANIFEST_BYTES_MAX);
    verified(manifest.await?, MANIFEST, digest)
}

/// A component to push, with its configuration and signature.
#[derive(Clone, Debug)]
pub struct Pushed {
    component: Vec<u8>,
    config: Vec<u8>,
    signature: Option<Vec<u8>>,
}

impl Pushed {
    /// Prepares a component with the names of its exports and imports, and reads the minisign signature next to `file`, if there
    /// is one.
    pub fn new(
        file: &Path,
        component: Vec<u8>,
        exports: &[String],
        imports: &[String],
    ) -> Result<Self, SignatureError> {
        Ok(Self {
            config: component_config(&component, exports, imports),
            signature: signature_of_file(file)?,
            component,
        })
    }

    /// Returns whether there is a minisign signature to push.
    pub fn is_signed(&self) -> bool {
        self.signature.is_some()
    }
}

/// Pushes a component, and returns its reference. The signature is pushed first, so that a component in the registry is never
/// temporarily unsigned.
pub async fn push(
    registry: &Registry,
    target: &PushTarget,
    pushed: &Pushed,
    deadline: Duration,
) -> Result<PinnedReference, RegistryError> {
    let repository = &target.repository.name;
    within(deadline, async {
        let manifest = Manifest::of_component(&pushed.config, &pushed.component);
        let manifest = serialized(&manifest)?;
        let digest = Digest::of(&manifest);
        if let Some(signature) = &pushed.signature {
            for blob in [EMPTY, signature.as_slice()] {
                push_blob(registry, repository, blob).await?;
            }
            let tag = tag(&digest, SIGNATURE_EXTENSION);
            let manifest = serialized(&Manifest::of_minisign_signature(signature))?;
            push_manifest(registry, repository, &tag, manifest).await?;
        }
        for blob in [&pushed.config, &pushed.component] {
            push_blob(registry, repository, blob).await?;
        }
        push_manifest(registry, repository, &target.tag, manifest).await?;
        Ok(PinnedReference {
            repository: target.repository.clone(),
            tag: Some(target.tag.clone()),
            digest,
        })
    })
    .await
}

/// Pushes a blob unless the registry already has it. Opens an upload session and sends the whole blob in one request
/// (distribution specification, "POST then PUT").
async fn push_blob(
    registry: &Registry,
    repository: &str,
    blob: &[u8],
) -> Result<(), RegistryError> {
    let digest = Digest::of(blob).to_string();
    let url = registry.url(repository, &format!("blobs/{digest}"));
    let found = registry.send(registry.request(Method::HEAD, url)).await?;
    if found.status() == StatusCode::OK {
        return Ok(());
    }
    let resource = "an upload";
    let url = registry.url(repository, "blobs/uploads/");
    let opening = registry.request(Method::POST, url.clone());
    let opened = registry.send(opening).await?;
    let opened = registry
        .expect(opened, resource, StatusCode::ACCEPTED)
        .await?;
    let location = opened
        .headers()
        .get(LOCATION)
        .ok_or_else(RegistryError::upload_address)?;
    let mut url = registry.upload_url(&url, location)?;
    url.query_pairs_mut().append_pair("digest", &digest);
    put(
        registry,
        url,
        "application/octet-stream",
        blob.to_vec(),
        resource,
    )
    .await
}

async fn push_manifest(
    registry: &Registry,
    repository: &str,
    tag: &str,
    manifest: Vec<u8>,
) -> Result<(), RegistryError> {
    let url = registry.url(repository, &format!("manifests/{tag}"));
    put(
        registry,
        url,
        MEDIA_TYPE,
        manifest,
        "the upload of the manifest",
    )
    .await
}

async fn put(
    registry: &Registry,
    url: Url,
    content_type: &'static str,
    body: Vec<u8>,
    resource: &'static str,
) -> Result<(), RegistryError> {
    let upload = registry
        .request(Method::PUT, url)
        .header(CONTENT_TYPE, content_type);
    let response = registry.send(upload.body(body)).await?;
    registry
        .expect(response, resource, StatusCode::CREATED)
        .await?;
    Ok(())
}

/// Serializes a manifest. The digest of these bytes identifies it.
fn serialized(manifest: &Manifest) -> Result<Vec<u8>, RegistryError> {
    let manifest = serde_json::to_value(manifest).map(|manifest: Value| manifest.to_string());
    let failed = |_| RegistryError::manifest("could not be serialized");
    Ok(manifest.map_err(failed)?.into_bytes())
}
