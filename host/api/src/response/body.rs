//! Bodies of responses: JSON, versions of credentials, and bodies that hold a value while they are sent.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use chrono::{DateTime, SecondsFormat, Utc};
use http_body::{Body as _, Frame, SizeHint};
use keywright_core::{
    UseCaseError,
    authorization::Caller,
    credential::{CredentialVersion, InputVersion, Issuance, Written},
};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, value::RawValue};
use uuid::Uuid;

use crate::{description::Timestamp, response::ApiError};

pub(crate) fn json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(HEADER_FIELDS);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON_MEDIA_TYPE));
    response
}

pub(crate) fn rendered(body: &impl Serialize) -> Result<Response, ApiError> {
    rendered_with(StatusCode::OK, body)
}

pub(crate) fn rendered_with(
    status: StatusCode,
    body: &impl Serialize,
) -> Result<Response, ApiError> {
    let mut text =
        serde_json::to_string(body).map_err(|cause| ApiError::unrendered(Some(cause)))?;
    if text.len() > LARGE_RESPONSE_BYTES {
        // Frees excess capacity, because the response may stay in memory for a slow client.
        text.shrink_to_fit();
    }
    Ok(json(status, text))
}

/// Renders a response with versions, as [`rendered_list`] does.
pub(crate) async fn rendered_versions(
    caller: Arc<Caller>,
    versions: Vec<CredentialVersion>,
    render: impl FnOnce(&[CredentialVersion]) -> Result<Response, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let values = versions
        .iter()
        .map(|version| version.content.value.expose().len());
    let bytes = values.fold(list_bytes(versions.len()), usize::saturating_add);
    rendered_list(caller, versions, bytes, render).await
}

/// Renders a response with a list of about `bytes` bytes. A large list is rendered on a blocking thread, which continues if
/// the client disconnects. So the thread holds the caller, and with it the memory reserved for the response.
///
/// # Errors
/// The error of `render`, or 500 if it panics.
pub(crate) async fn rendered_list<T: Send + 'static>(
    caller: Arc<Caller>,
    items: Vec<T>,
    bytes: usize,
    render: impl FnOnce(&[T]) -> Result<Response, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    if bytes <= LARGE_RESPONSE_BYTES {
        return render(&items);
    }
    let rendering = tokio::task::spawn_blocking(move || {
        let rendered = render(&items);
        drop((items, caller));
        rendered
    });
    rendering
        .await
        .unwrap_or_else(|_| Err(ApiError::unrendered(None)))
}

/// Returns the approximate size of a list with this many entries, in bytes.
pub(crate) fn list_bytes(entries: usize) -> usize {
    entries.saturating_mul(ENTRY_BYTES)
}

/// A list that is rendered item by item, so that at most one item's body is in memory.
pub(crate) struct LazyList<'a, B>(Box<dyn Fn(usize) -> Option<B> + 'a>);

impl<'a, B> LazyList<'a, B> {
    pub(crate) fn new<T>(items: &'a [T], body: impl Fn(&'a T) -> B + 'a) -> Self {
        Self(Box::new(move |index| items.get(index).map(&body)))
    }
}

impl<B: Serialize> Serialize for LazyList<'_, B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..).map_while(|index| (self.0)(index)))
    }
}

/// Formats a time for a response, truncated to seconds.
pub(crate) fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A credential version. The value is the stored JSON, unchanged.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VersionBody<'a> {
    /// The credential's type, in lower case.
    #[serde(rename = "type")]
    credential_type: &'a str,
    /// When this version was created.
    #[schemars(with = "Timestamp")]
    version_created_at: String,
    /// The id of this version.
    id: Uuid,
    /// The credential's name, with the casing of its first version.
    name: &'a str,
    /// The metadata of this version, any JSON; null if there is none.
    #[schemars(with = "Value")]
    metadata: Option<&'a RawValue>,
    /// The value; its schema depends on the type.
    #[schemars(with = "Value")]
    value: &'a RawValue,
    /// For certificates: whether this version is transitional (trusted, but not used to sign).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    transitional: Option<bool>,
    /// For certificates: whether this version is a CA certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    certificate_authority: Option<bool>,
    /// For certificates: whether this version is self-signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    self_signed: Option<bool>,
    /// For certificates: whether the server generated this version; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    generated: Option<bool>,
    /// For certificates: when this version expires; null if it has no certificate. For other types: when the value expires;
    /// absent unless its plugin returned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    #[expect(
        clippy::option_option,
        reason = "absent, null or a time are different responses"
    )]
    expiry_date: Option<Option<String>>,
    /// For types other than certificate: when the value should be rotated; absent unless its plugin returned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    rotation_date: Option<String>,
    /// For a newly generated or kept certificate: whether the requested duration was raised to the configured minimum; `false` if the
    /// existing version was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    duration_overridden: Option<bool>,
    /// For a newly generated or kept certificate: its validity in days; 0 if the existing version was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    duration_used: Option<u32>,
    /// For a newly generated or kept certificate: the length of its key, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    key_length: Option<u32>,
    /// With `provenance`: the plugin that generated the value, by the SHA-256 of its component. Absent if the value was set without
    /// provenance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    generated_by: Option<String>,
    /// With `provenance`: the parameters that generated the value, in canonical form.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    parameters: Option<Box<RawValue>>,
    /// With `provenance`: the versions of other credentials from which the value was derived. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<InputBody<'_>>")]
    derived_from: Option<Vec<InputBody<'a>>>,
    /// With `provenance`: whether `generated_by` and `parameters` are claims of the caller who set the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    imported: Option<bool>,
}

/// A version of another credential from which a value was derived.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DerivedFrom")]
struct InputBody<'a> {
    /// The JSON Pointer of the credential's name in `parameters`.
    parameter: &'a str,
    /// The credential's name, with the casing of its first version.
    name: &'a str,
    /// The id of the version. It may have been deleted.
    version_id: Uuid,
}

impl<'a> InputBody<'a> {
    fn all(inputs: &'a [InputVersion]) -> Option<Vec<Self>> {
        let bodies = inputs.iter().map(|input| Self {
            parameter: &input.pointer,
            name: input.name.as_str(),
            version_id: input.version_id,
        });
        (!inputs.is_empty()).then(|| bodies.collect())
    }
}

impl<'a> VersionBody<'a> {
    pub(crate) fn of(version: &'a CredentialVersion) -> Result<Self, UseCaseError> {
        let metadata = version.content.metadata.as_ref();
        let is_certificate = version.credential_type.is_certificate();
        let attributes = is_certificate.then_some(&version.attributes);
        let facts = attributes.and_then(|attributes| attributes.certificate.as_ref());
        let lifetime = version.attributes.lifetime;
        Ok(Self {
            credential_type: version.credential_type.as_str(),
            version_created_at: timestamp(version.created_at),
            id: version.id,
            name: version.name.as_str(),
            metadata: metadata
                .map(|metadata| raw(metadata.json().expose()))
                .transpose()?,
            value: raw(version.content.value.expose())?,
            transitional: attributes.map(|attributes| attributes.is_transitional),
            certificate_authority: attributes
                .map(|_| facts.is_some_and(|facts| facts.is_certificate_authority)),
            self_signed: attributes.map(|_| facts.is_some_and(|facts| facts.is_self_signed)),
            generated: attributes.and_then(|attributes| attributes.is_generated),
            expiry_date: if is_certificate {
                Some(facts.map(|facts| timestamp(facts.expires_at)))
            } else {
                lifetime.expires_at.map(|time| Some(timestamp(time)))
            },
            rotation_date: lifetime.rotate_at.map(timestamp),
            duration_overridden: None,
            duration_used: None,
            key_length: None,
            generated_by: None,
            parameters: None,
            derived_from: None,
            imported: None,
        })
    }

    pub(crate) fn with_provenance(
        self,
        version: &'a CredentialVersion,
    ) -> Result<Self, UseCaseError> {
        let Some((digest, parameters)) = version.provenance() else {
            return Ok(self);
        };
        Ok(Self {
            generated_by: Some(format!("sha256:{digest}")),
            parameters: Some(raw(parameters.expose())?.to_owned()),
            derived_from: InputBody::all(&version.content.inputs),
            imported: Some(version.attributes.is_generated != Some(true)),
            ..self
        })
    }

    pub(crate) fn of_written(written: &'a Written) -> Result<Self, UseCaseError> {
        let issuance: Option<&Issuance> = written.issuance.as_ref();
        Ok(Self {
            duration_overridden: issuance.map(|issuance| issuance.is_duration_overridden),
            duration_used: issuance.map(|issuance| issuance.duration_used_days),
            key_length: issuance.map(|issuance| issuance.key_length_bits),
            ..Self::of(&written.version)?
        })
    }
}

fn raw(json: &str) -> Result<&RawValue, UseCaseError> {
    keywright_json::raw(json).map_err(|_| UseCaseError::StoredValueMalformed)
}

/// Maximum size of a response that is rendered on the request's own thread, in bytes.
const LARGE_RESPONSE_BYTES: usize = 256 * 1024;

/// The approximate size of an entry of a list without its value, in bytes.
const ENTRY_BYTES: usize = 256;

/// The number of header fields for which responses allocate memory at once.
const HEADER_FIELDS: usize = 10;

pub(crate) const JSON_MEDIA_TYPE: &str = "application/json;charset=UTF-8";

/// A value held by a [`HeldBody`].
pub trait Held: Unpin {
    /// Called when part of the body was sent, and more follows.
    fn moved(&self) {}
}

/// A body that holds a value, such as a permit, until the connection has accepted all of it, or until it is dropped.
///
/// It is sent in frames of at most [`FRAME_BYTES_MAX`], with the last byte in a frame of its own: an HTTP/2 connection accepts a
/// whole frame as soon as the client's window allows one byte. So it accepts the last frame only when the window allowed all
/// bytes before it.
#[derive(Debug)]
pub struct HeldBody<T> {
    body: Body,
    /// Data from the body that was not sent yet.
    rest: Bytes,
    held: Option<T>,
}

impl<T> HeldBody<T> {
    /// Creates a body that holds a value.
    pub fn new(body: Body, held: T) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            held: Some(held),
        }
    }

    fn next_frame(&mut self) -> Frame<Bytes> {
        let is_last = self.rest.len() <= FRAME_BYTES_MAX && self.body.is_end_stream();
        let bytes = match self.rest.len() {
            0 | 1 => self.rest.len(),
            length if is_last => length.saturating_sub(1),
            length => length.min(FRAME_BYTES_MAX),
        };
        Frame::data(self.rest.split_to(bytes))
    }
}

impl<T: Held> http_body::Body for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(held) = &self.held {
            held.moved();
        }
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_frame())));
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            self.held = None;
            return Poll::Ready(None);
        };
        Poll::Ready(Some(frame.map(|frame| match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                self.next_frame()
            }
            Err(other) => other,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

/// Maximum size of a frame, in bytes: the default maximum of HTTP/2 (RFC 9113, section 6.5.2).
pub const FRAME_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use futures_util::FutureExt;
    use http_body_util::BodyExt;
    use keywright_core::{
        Secret,
        authorization::Authentication,
        credential::{Content, CredentialName, CredentialType, VersionAttributes},
        permission::Actor,
        response_memory::{ResponseLimits, ResponseMemory},
    };

    use super::*;

    #[tokio::test]
    async fn memory_stays_reserved_while_a_cancelled_response_is_rendered() {
        const BYTES: usize = LARGE_RESPONSE_BYTES + 1;
        let memory = Arc::new(ResponseMemory::new(ResponseLimits {
            response_bytes_max: BYTES,
            responses_bytes_max: 2 * BYTES,
            responses_bytes_per_actor_max: 2 * BYTES,
        }));
        let actor = Actor::parse("uaa-client:app").unwrap();
        let subject = "app".to_owned();
        let response = Arc::new(memory.begin(&actor));
        let caller = Caller::new(actor, Authentication::Token { subject }).with_response(response);
        caller.reserve(BYTES).unwrap();
        let caller = Arc::new(caller);
        let small = rendered_list(Arc::clone(&caller), vec![()], BYTES - 1, |_| {
            Ok(json(StatusCode::OK, String::new()))
        });
        assert!(small.now_or_never().is_some());
        let (end, may_end) = channel::<()>();
        let response = rendered_list(caller, vec![()], BYTES, move |_| {
            let _ = may_end.recv();
            Err(ApiError::unrendered(None))
        });
        assert!(response.now_or_never().is_none());
        assert_eq!(memory.used_bytes(), 2 * BYTES);
        drop(end);
    }

    fn version(credential_type: &str, value: &str) -> CredentialVersion {
        CredentialVersion {
            id: Uuid::nil(),
            credential_id: Uuid::nil(),
            name: CredentialName::parse("/a/b").unwrap(),
            credential_type: CredentialType::parse(credential_type).unwrap(),
            created_at: "2026-01-02T03:04:05.678Z".parse().unwrap(),
            content: Content {
                value: Secret::new(value.to_owned()),
                parameters: None,
                metadata: None,
                trusted_ca: None,
                inputs: Vec::new(),
                chosen_by: None,
            },
            attributes: VersionAttributes::default(),
        }
    }

    #[test]
    fn invalid_json_is_not_rendered() {
        for value in ["", "{", r#"1,"name":2"#] {
            assert!(
                VersionBody::of(&version("value", value)).is_err(),
                "{value}"
            );
        }
    }

    impl Held for Arc<()> {}

    #[tokio::test]
    async fn the_held_value_is_dropped_when_the_body_is_sent_or_dropped() {
        let value = Arc::new(());
        let mut body = HeldBody::new(Body::from("text"), Arc::clone(&value));
        assert_eq!(body.size_hint().exact(), Some(4));
        for rest in [1, 0] {
            assert!(!body.is_end_stream());
            assert!(body.frame().await.is_some());
            assert_eq!(body.size_hint().exact(), Some(rest));
            assert_eq!(Arc::strong_count(&value), 2);
        }
        assert!(body.is_end_stream());
        assert!(body.frame().await.is_none());
        assert_eq!(Arc::strong_count(&value), 1);
        let body = HeldBody::new(Body::from("text"), Arc::clone(&value));
        drop(body);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[tokio::test]
    async fn a_body_is_sent_in_frames_with_a_last_frame_of_one_byte() {
        const MAX: usize = FRAME_BYTES_MAX;
        for (length, frames) in [
            (0, &[][..]),
            (1, &[1]),
            (2, &[1, 1]),
            (MAX, &[MAX - 1, 1]),
            (MAX + 1, &[MAX, 1]),
            (2 * MAX + 3, &[MAX, MAX, 2, 1]),
        ] {
            let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
            // A nested held body is not split further.
            let body = HeldBody::new(Body::from(bytes.clone()), Arc::new(()));
            let mut body = HeldBody::new(Body::new(body), Arc::new(()));
            let (mut lengths, mut received) = (Vec::new(), Vec::new());
            while let Some(frame) = body.frame().await {
                let data = frame.unwrap().into_data().unwrap();
                lengths.push(data.len());
                received.extend(data);
            }
            lengths.retain(|length| *length > 0);
            assert_eq!(lengths, frames);
            assert!(received == bytes);
        }
    }
}
