//! Pushing components.

use std::{path::Path, time::Duration};

use reqwest::{Method, StatusCode, header::LOCATION};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    Digest, Fault, PinnedReference, PushTarget, Registry, SIGNATURE_EXTENSION, SignatureRefused,
    manifest::{EMPTY, MEDIA_TYPE, Manifest, component_config},
    registry::Question,
    signature::{beside, tag},
};

/// A component that is to be pushed.
#[derive(Clone, Debug)]
pub struct Pushed {
    component: Vec<u8>,
    config: Vec<u8>,
    signature: Option<Vec<u8>>,
}

/// Whether a signature was pushed with a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// There was none beside the file.
    No,
    /// The one beside the file.
    ByMinisign,
}

impl Pushed {
    /// A component with the names of what it exports and imports, and the signature by minisign that is beside its file.
    ///
    /// # Errors
    /// When there is a file in the signature's place that is none.
    pub fn new(
        file: &Path,
        component: Vec<u8>,
        exports: &[String],
        imports: &[String],
    ) -> Result<Self, SignatureRefused> {
        Ok(Self {
            config: component_config(&component, exports, imports),
            signature: beside(file)?,
            component,
        })
    }
}

/// Pushes a component, its signature first, so that whoever finds the component finds that too.
///
/// # Errors
/// When the registry does not take it within that time.
pub async fn push(
    registry: &Registry,
    target: &PushTarget,
    pushed: &Pushed,
    deadline: Duration,
) -> Result<(PinnedReference, Signed), Fault> {
    let too_slow = |_| Fault::TooSlow {
        seconds: deadline.as_secs(),
    };
    let outcome = timeout(deadline, push_without_hurry(registry, target, pushed));
    outcome.await.map_err(too_slow)?
}

async fn push_without_hurry(
    registry: &Registry,
    target: &PushTarget,
    pushed: &Pushed,
) -> Result<(PinnedReference, Signed), Fault> {
    let repository = &target.place.repository;
    let manifest = Manifest::of_component(&pushed.config, &pushed.component);
    let manifest = written(&manifest)?;
    let digest = Digest::of(&manifest);
    let mut signed = Signed::No;
    if let Some(signature) = &pushed.signature {
        for blob in [EMPTY, signature.as_slice()] {
            push_blob(registry, repository, blob).await?;
        }
        let tag = tag(&digest, SIGNATURE_EXTENSION);
        let manifest = written(&Manifest::of_minisign_signature(signature))?;
        push_manifest(registry, repository, &tag, manifest).await?;
        signed = Signed::ByMinisign;
    }
    for blob in [&pushed.config, &pushed.component] {
        push_blob(registry, repository, blob).await?;
    }
    push_manifest(registry, repository, &target.tag, manifest).await?;
    let reference = PinnedReference {
        place: target.place.clone(),
        tag: Some(target.tag.clone()),
        digest,
    };
    Ok((reference, signed))
}

/// Pushes what a manifest is to name, unless the registry has it: a session of upload is opened, and takes all at once
/// (distribution specification, "POST then PUT").
async fn push_blob(registry: &Registry, repository: &str, blob: &[u8]) -> Result<(), Fault> {
    let digest = Digest::of(blob).to_string();
    let url = registry.url(repository, &format!("blobs/{digest}"));
    let found = registry.ask(Question::new(Method::HEAD, url)).await?;
    if found.status() == StatusCode::OK {
        return Ok(());
    }
    let what = "an upload";
    let url = registry.url(repository, "blobs/uploads/");
    let opened = registry
        .ask(Question::new(Method::POST, url.clone()))
        .await?;
    let opened = registry
        .expect(opened, what, &[StatusCode::ACCEPTED])
        .await?;
    let location = opened.headers().get(LOCATION).ok_or(Fault::UploadAddress)?;
    let mut url = registry.upload_url(&url, location)?;
    url.query_pairs_mut().append_pair("digest", &digest);
    let question = Question {
        content_type: Some("application/octet-stream"),
        body: Some(blob.to_vec()),
        ..Question::new(Method::PUT, url)
    };
    let answer = registry.ask(question).await?;
    registry
        .expect(answer, what, &[StatusCode::CREATED])
        .await?;
    Ok(())
}

async fn push_manifest(
    registry: &Registry,
    repository: &str,
    tag: &str,
    manifest: Vec<u8>,
) -> Result<(), Fault> {
    let url = registry.url(repository, &format!("manifests/{tag}"));
    let question = Question {
        content_type: Some(MEDIA_TYPE),
        body: Some(manifest),
        ..Question::new(Method::PUT, url)
    };
    let answer = registry.ask(question).await?;
    registry
        .expect(answer, "the upload of the manifest", &[StatusCode::CREATED])
        .await?;
    Ok(())
}

/// The bytes of a manifest, whose digest names it from now on.
fn written(manifest: &Manifest) -> Result<Vec<u8>, Fault> {
    let manifest = serde_json::to_value(manifest).map(|manifest: Value| manifest.to_string());
    let unwritten = |_| Fault::ManifestMalformed("can't be written");
    Ok(manifest.map_err(unwritten)?.into_bytes())
}
