//! Pulling components.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    Cache, Digest, Fault, PinnedReference, Registry, SignatureKey,
    cache::CacheEntry,
    manifest::{Descriptor, MEDIA_TYPE, Manifest},
};

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
    /// Whether everything was in the cache, so that no request was sent to the registry.
    pub was_kept: bool,
}

/// Pulls a component and verifies it, and its signature if a key is given. Whatever the cache contains is not requested from the
/// registry.
pub async fn pull(
    registry: &Registry,
    reference: &PinnedReference,
    key: Option<&SignatureKey>,
    cache: &Cache,
    limits: PullLimits,
) -> Result<Pulled, Fault> {
    let pulled = pull_without_deadline(registry, reference, key, cache, limits.component_bytes_max);
    let too_slow = |_| Fault::TooSlow {
        seconds: limits.deadline.as_secs(),
    };
    timeout(limits.deadline, pulled).await.map_err(too_slow)?
}

async fn pull_without_deadline(
    registry: &Registry,
    reference: &PinnedReference,
    key: Option<&SignatureKey>,
    cache: &Cache,
    component_bytes_max: u64,
) -> Result<Pulled, Fault> {
    let (repository, digest) = (&reference.repository.name, &reference.digest);
    let kept_manifest = cache.read_verified(CacheEntry::Manifest, digest, MANIFEST_BYTES_MAX);
    let mut was_kept = kept_manifest.is_some();
    let manifest = match kept_manifest {
        Some(manifest) => manifest,
        None => manifest(registry, repository, digest).await?,
    };
    let read = Manifest::read(&manifest)?;
    let layer = read.component()?;
    let layer_digest = layer.digest()?;
    let kept = cache.read_verified(CacheEntry::Component, &layer_digest, component_bytes_max);
    let kept = kept.filter(|component| layer.is_of_size(component));
    was_kept &= kept.is_some();
    let component = match kept {
        Some(component) => component,
        None => blob(registry, repository, layer, COMPONENT, component_bytes_max).await?,
    };
    if let Some(key) = key {
        was_kept &= key.verify(registry, reference, &component, cache).await?;
    }
    if !was_kept {
        cache.write(CacheEntry::Manifest, digest, &manifest);
        cache.write(CacheEntry::Component, &layer_digest, &component);
    }
    Ok(Pulled {
        component,
        was_kept,
    })
}

async fn manifest(
    registry: &Registry,
    repository: &str,
    digest: &Digest,
) -> Result<Vec<u8>, Fault> {
    let url = registry.url(repository, &format!("manifests/{digest}"));
    let manifest = registry.get(url, MANIFEST, Some(MEDIA_TYPE), MANIFEST_BYTES_MAX);
    verified(manifest.await?, MANIFEST, digest)
}

/// Pulls a blob and verifies its digest and size against its descriptor.
pub(crate) async fn blob(
    registry: &Registry,
    repository: &str,
    descriptor: &Descriptor,
    resource: &'static str,
    bytes_max: u64,
) -> Result<Vec<u8>, Fault> {
    if descriptor.size > bytes_max {
        return Err(Fault::TooLarge {
            resource,
            bytes_max,
        });
    }
    let digest = descriptor.digest()?;
    let url = registry.url(repository, &format!("blobs/{digest}"));
    let bytes = registry.get(url, resource, None, bytes_max).await?;
    let bytes = verified(bytes, resource, &digest)?;
    if descriptor.is_of_size(&bytes) {
        return Ok(bytes);
    }
    Err(Fault::SizeDiffers {
        resource,
        expected: descriptor.size,
        found: bytes.len(),
    })
}

fn verified(bytes: Vec<u8>, resource: &'static str, digest: &Digest) -> Result<Vec<u8>, Fault> {
    let found = Digest::of(&bytes);
    if found == *digest {
        return Ok(bytes);
    }
    Err(Fault::DigestDiffers {
        resource,
        expected: digest.clone(),
        found,
    })
}

const COMPONENT: &str = "the component";
const MANIFEST: &str = "the manifest";

/// The largest manifest, in bytes. A component's manifest has some hundred bytes.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 256 * 1024;
