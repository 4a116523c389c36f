//! Converts failures to responses.

use std::{borrow::Cow, error::Error, fmt::Write, panic::AssertUnwindSafe, time::Duration};

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use keywright_core::{
    UseCaseError,
    ports::{PluginCallError, PluginFaultError, RepositoryError, SealError},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    request::{BodyError, QueryError, truncated_name},
    response::json,
};

/// A failed request: a status and message for the caller, and a cause for the log only.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: String,
    error_description: Option<&'static str>,
    challenge: Option<Cow<'static, str>>,
    retry_after: Option<Duration>,
    /// Whether the failure is expected, and therefore not logged.
    is_expected: bool,
    cause: Option<Box<dyn Error + Send + Sync + 'static>>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            error_description: None,
            challenge: None,
            retry_after: None,
            is_expected: false,
            cause: None,
        }
    }

    /// Creates an authentication failure: an error code for clients, a message, and the challenge.
    pub(crate) fn unauthenticated(
        status: StatusCode,
        code: &'static str,
        description: &'static str,
        challenge: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            error_description: Some(description),
            challenge: Some(challenge.into()),
            ..Self::new(status, code)
        }
    }

    /// Creates an authentication failure that is not about a token.
    pub(crate) fn unidentified(error: &'static str) -> Self {
        Self {
            challenge: Some("Bearer".into()),
            ..Self::new(StatusCode::UNAUTHORIZED, error)
        }
    }

    /// Creates a failure for a limit, or for a dependency whose failures are logged elsewhere.
    pub(crate) fn unavailable(error: &'static str, retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            is_expected: true,
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
        }
    }

    /// Creates the failure for read-only mode, without a `Retry-After`, because the end of the mode is unknown.
    pub(crate) fn read_only() -> Self {
        Self {
            is_expected: true,
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server is in read-only mode and rejects writes",
            )
        }
    }

    pub(crate) fn too_many_requests(retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "the caller makes too many requests; try again later",
            )
        }
    }

    /// Creates the failure for a response that can't be serialized, or whose rendering panicked.
    pub(crate) fn unrendered(cause: Option<serde_json::Error>) -> Self {
        Self {
            cause: cause.map(Into::into),
            ..Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server could not render the response",
            )
        }
    }

    /// Creates the failure for an invalid body, with the status for the endpoint.
    pub(crate) fn body(refused: &BodyError, endpoint: Endpoint) -> Self {
        let status = match refused {
            BodyError::Json(_)
            | BodyError::Malformed
            | BodyError::Mismatched(_)
            | BodyError::FieldMalformed { .. }
            | BodyError::FieldMissing(_) => StatusCode::BAD_REQUEST,
            BodyError::UnknownField(_) => endpoint.unknown_field_status(),
        };
        Self::new(status, refused.to_string())
    }

    /// Creates the failure for a body whose memory can't be reserved.
    pub(crate) fn body_without_memory(failure: UseCaseError) -> Self {
        let error = "the request body needs more memory than is free at present; try again later";
        Self {
            error: error.to_owned(),
            ..Self::from(failure)
        }
    }

    pub(crate) fn of(failure: UseCaseError, endpoint: Endpoint) -> Self {
        let mut error = Self::new(status(&failure, endpoint), message(&failure));
        error.retry_after = retry_after(&failure);
        error.is_expected = is_expected(&failure);
        error.cause = Some(Box::new(failure));
        error
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Logs a failure that is part of a successful response, and returns its message.
    pub(crate) fn into_message(self) -> String {
        self.log();
        let description = self.error_description.map(str::to_owned);
        description.unwrap_or(self.error)
    }

    /// Logs failures of the server. Errors of callers are not logged, because their messages may contain request data.
    /// Expected failures are not logged either, because callers could fill the log with them; metrics count them.
    fn log(&self) {
        if self.is_expected || !self.status.is_server_error() {
            return;
        }
        let error = self
            .cause
            .as_deref()
            .map_or_else(|| self.error.clone(), |cause| error_chain(cause));
        tracing::error!(http.status = self.status.as_u16(), error, "request failed");
    }
}

/// Endpoints whose statuses differ use [`ApiError::of`].
impl From<UseCaseError> for ApiError {
    fn from(failure: UseCaseError) -> Self {
        Self::of(failure, Endpoint::Other)
    }
}

/// Endpoints whose statuses differ use [`ApiError::body`].
impl From<BodyError> for ApiError {
    fn from(refused: BodyError) -> Self {
        Self::body(&refused, Endpoint::Other)
    }
}

impl From<QueryError> for ApiError {
    fn from(refused: QueryError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, refused.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let body = FailureBody {
            error: &self.error,
            error_description: self.error_description,
        };
        let mut response = json(
            self.status,
            serde_json::to_string(&body).unwrap_or_default(),
        );
        let headers = response.headers_mut();
        if let Some(challenge) = self.challenge
            && let Ok(challenge) = HeaderValue::from_str(&challenge)
        {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(retry_after) = self.retry_after {
            let seconds = u64::try_from(retry_after.as_millis().div_ceil(1_000));
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.unwrap_or(1).max(1)));
        }
        response
    }
}

/// The endpoint of a failure, if the status depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `POST /api/v1/data` for generating.
    Generate,
    /// Any other endpoint.
    Other,
    /// `POST /api/v1/regenerate`.
    Regenerate,
    /// `POST /api/v1/data` for regenerating.
    RegenerateThroughData,
    /// `PUT /api/v1/data`.
    Set,
}

impl Endpoint {
    fn unknown_field_status(self) -> StatusCode {
        match self {
            Self::Generate | Self::RegenerateThroughData => StatusCode::BAD_REQUEST,
            Self::Other | Self::Regenerate | Self::Set => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    fn unknown_type_status(self) -> StatusCode {
        match self {
            Self::Set => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    fn long_metadata_status(self) -> StatusCode {
        match self {
            Self::Regenerate | Self::RegenerateThroughData => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Generate | Self::Other | Self::Set => StatusCode::BAD_REQUEST,
        }
    }
}

/// Returns the messages of an error and its causes, outermost first, on one line. Skips a message that an outer message
/// contains, as in errors of sqlx.
pub fn error_chain(error: &dyn Error) -> String {
    let mut chain = on_one_line(error);
    let mut source = error.source();
    while let Some(cause) = source {
        let message = on_one_line(cause);
        if !chain.contains(&message) {
            // Writing to a string does not fail.
            let _ = write!(chain, ": {message}");
        }
        source = cause.source();
    }
    chain
}

fn on_one_line(error: &dyn Error) -> String {
    let message = error.to_string();
    let lines: Vec<_> = message.lines().map(str::trim).collect();
    lines.join(" ")
}

/// The body of an error response. All fields are strings, because clients parse it into a map of strings.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Failure")]
pub(crate) struct FailureBody<'a> {
    /// The error message; for a rejected token, an error code.
    error: &'a str,
    /// For a rejected token, the error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "&'a str")]
    error_description: Option<&'a str>,
}

fn status(failure: &UseCaseError, endpoint: Endpoint) -> StatusCode {
    match failure {
        UseCaseError::ActorMalformed(_)
        | UseCaseError::CertificateRefused(_)
        | UseCaseError::IssuerNotRegenerated(_)
        | UseCaseError::IssuerUnusable(..)
        | UseCaseError::NameMalformed(_)
        | UseCaseError::NotRegeneratable(_)
        | UseCaseError::OperationsMissing
        | UseCaseError::OwnPermission
        | UseCaseError::ParametersMissing(_)
        | UseCaseError::PathMalformed(_)
        | UseCaseError::PermissionFixed
        | UseCaseError::PluginInUse(_)
        | UseCaseError::ReferencedFieldMissing { .. }
        | UseCaseError::ReferenceNotJson(_)
        | UseCaseError::ReferenceNotScalar(_)
        | UseCaseError::TypeDiffers(_)
        | UseCaseError::TypeNotGeneratable(_)
        | UseCaseError::OnlyVersion
        | UseCaseError::TransitionalExists
        | UseCaseError::TransitionalVersionRefused(_)
        | UseCaseError::ValueRefused(_) => StatusCode::BAD_REQUEST,
        UseCaseError::NotAllRegenerated { reason, .. } => status(reason, endpoint),
        UseCaseError::MetadataTooLong(_) => endpoint.long_metadata_status(),
        UseCaseError::TypeUnknown { .. } => endpoint.unknown_type_status(),
        UseCaseError::ValueFieldUnknown(_) => endpoint.unknown_field_status(),
        UseCaseError::OperationUnknown(_) => StatusCode::UNPROCESSABLE_ENTITY,
        UseCaseError::PermissionCovered(_) | UseCaseError::PermissionExists => StatusCode::CONFLICT,
        UseCaseError::InputNotFound(_)
        | UseCaseError::IssuerNotFound
        | UseCaseError::NotFound
        | UseCaseError::PermissionNotAddable
        | UseCaseError::PermissionNotFound
        | UseCaseError::PermissionsNotReadable
        | UseCaseError::ReferenceNotFound(_)
        | UseCaseError::VersionNotFound => StatusCode::NOT_FOUND,
        UseCaseError::NoResolver => StatusCode::NOT_IMPLEMENTED,
        UseCaseError::WriteNotPermitted => StatusCode::FORBIDDEN,
        UseCaseError::BulkTooLarge
        | UseCaseError::InputsTooLarge
        | UseCaseError::ReferencesTooLarge
        | UseCaseError::TooManyDerived
        | UseCaseError::TooManyGenerated
        | UseCaseError::ResponseTooLarge { .. }
        | UseCaseError::TooManyPermissions
        | UseCaseError::TooManySigned
        | UseCaseError::ValueTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        UseCaseError::BulkChangeOfActor | UseCaseError::NoResponseMemoryOfActor => {
            StatusCode::TOO_MANY_REQUESTS
        }
        UseCaseError::Contended
        | UseCaseError::NoResponseMemory
        | UseCaseError::Repository(RepositoryError::Unavailable(_))
        | UseCaseError::Seal(
            SealError::KeyExhausted(_)
            | SealError::KeyManagementUnavailable(_)
            | SealError::UsageNotCounted,
        )
        | UseCaseError::TooManyBulkChanges => StatusCode::SERVICE_UNAVAILABLE,
        UseCaseError::GeneratedCertificateRefused(_)
        | UseCaseError::Repository(_)
        | UseCaseError::Seal(_)
        | UseCaseError::StoredValueMalformed => StatusCode::INTERNAL_SERVER_ERROR,
        UseCaseError::Plugin(plugin) => plugin_status(plugin, endpoint),
    }
}

fn plugin_status(failure: &PluginCallError, endpoint: Endpoint) -> StatusCode {
    match failure {
        PluginCallError::DocumentRefused(_)
        | PluginCallError::ParametersRefused(_)
        | PluginCallError::ValueRefused(_) => StatusCode::BAD_REQUEST,
        PluginCallError::ValueFieldUnknown(_) => endpoint.unknown_field_status(),
        PluginCallError::Faulted {
            fault: PluginFaultError::InputTooLarge(_) | PluginFaultError::OutputTooLarge(_),
            ..
        } => StatusCode::PAYLOAD_TOO_LARGE,
        PluginCallError::Faulted {
            fault: PluginFaultError::NotInstantiated,
            ..
        }
        | PluginCallError::QueueFull { .. }
        | PluginCallError::CircuitOpen { .. } => StatusCode::SERVICE_UNAVAILABLE,
        PluginCallError::ActorQueueFull { .. } => StatusCode::TOO_MANY_REQUESTS,
        PluginCallError::Faulted { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn message(failure: &UseCaseError) -> String {
    match failure {
        UseCaseError::ValueFieldUnknown(field)
        | UseCaseError::Plugin(PluginCallError::ValueFieldUnknown(field)) => {
            format!("the value has the unknown field {}", truncated_name(field))
        }
        UseCaseError::InputNotFound(parameter) => {
            UseCaseError::InputNotFound(truncated_name(parameter)).to_string()
        }
        // Callers do not get the plugin's own message.
        UseCaseError::Plugin(PluginCallError::Faulted {
            fault: PluginFaultError::Misconfigured | PluginFaultError::Reported,
            ..
        }) => format!("{failure}; the server's log has its message"),
        UseCaseError::NotAllRegenerated { reason, .. } => format!("{failure}: {}", message(reason)),
        UseCaseError::Repository(RepositoryError::Unavailable(_)) => {
            "the database is not available; try again later".to_owned()
        }
        failure => failure.to_string(),
    }
}

/// Returns whether a failure is due to a limit or an open circuit.
fn is_expected(failure: &UseCaseError) -> bool {
    match failure {
        UseCaseError::NotAllRegenerated { reason, .. } => is_expected(reason),
        UseCaseError::Contended
        | UseCaseError::NoResponseMemory
        | UseCaseError::Plugin(
            PluginCallError::QueueFull { .. } | PluginCallError::CircuitOpen { .. },
        )
        | UseCaseError::TooManyBulkChanges => true,
        _ => false,
    }
}

fn retry_after(failure: &UseCaseError) -> Option<Duration> {
    match failure {
        UseCaseError::Plugin(PluginCallError::Faulted {
            fault: PluginFaultError::NotInstantiated,
            ..
        }) => Some(INSTANCE_RETRY_AFTER),
        UseCaseError::Plugin(
            PluginCallError::ActorQueueFull { retry_after }
            | PluginCallError::QueueFull { retry_after }
            | PluginCallError::CircuitOpen { retry_after, .. },
        ) => Some(*retry_after),
        UseCaseError::NotAllRegenerated { reason, .. } => retry_after(reason),
        UseCaseError::Contended => Some(CONTENDED_RETRY_AFTER),
        UseCaseError::NoResponseMemory | UseCaseError::NoResponseMemoryOfActor => {
            Some(RESPONSE_MEMORY_RETRY_AFTER)
        }
        UseCaseError::BulkChangeOfActor | UseCaseError::TooManyBulkChanges => {
            Some(BULK_REGENERATION_RETRY_AFTER)
        }
        UseCaseError::Repository(RepositoryError::Unavailable(_))
        | UseCaseError::Seal(
            SealError::KeyExhausted(_)
            | SealError::KeyManagementUnavailable(_)
            | SealError::UsageNotCounted,
        ) => Some(DATABASE_RETRY_AFTER),
        _ => None,
    }
}

/// Returns the response of a handler, or a failure if the handler panics.
pub(crate) async fn or_panicked(responding: impl Future<Output = Response>) -> Response {
    let responding = AssertUnwindSafe(responding).catch_unwind();
    responding.await.unwrap_or_else(|_payload| panicked())
}

/// Returns the response for a handler that panicked. The panic message is not logged here, because it could contain
/// any data.
fn panicked() -> Response {
    tracing::error!("a handler panicked");
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the server could not handle the request",
    )
    .into_response()
}

const CONTENDED_RETRY_AFTER: Duration = Duration::from_secs(1);
const RESPONSE_MEMORY_RETRY_AFTER: Duration = Duration::from_secs(1);
const BULK_REGENERATION_RETRY_AFTER: Duration = Duration::from_secs(10);
const DATABASE_RETRY_AFTER: Duration = Duration::from_secs(5);
const INSTANCE_RETRY_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use keywright_core::credential::CredentialName;

    use super::*;

    #[test]
    fn an_error_chain_repeats_no_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct OuterError(&'static str, #[source] std::str::ParseBoolError);

        for text in [
            "reading",
            "reading: provided string was not `true` or `false`",
        ] {
            let outer = OuterError(text, "".parse::<bool>().unwrap_err());
            assert_eq!(
                error_chain(&outer),
                "reading: provided string was not `true` or `false`"
            );
        }
    }

    fn refused(endpoint: Endpoint, failure: UseCaseError) -> u16 {
        ApiError::of(failure, endpoint).status.as_u16()
    }

    #[test]
    fn a_long_unknown_field_of_a_value_is_truncated() {
        let field = "ä".repeat(101);
        for failure in [
            UseCaseError::ValueFieldUnknown(field.clone()),
            PluginCallError::ValueFieldUnknown(field).into(),
        ] {
            let failure = ApiError::of(failure, Endpoint::Set);
            let expected = format!("the value has the unknown field {}", "ä".repeat(100));
            assert_eq!(failure.error, expected);
        }
    }

    #[test]
    fn failures_without_a_test_by_request_have_their_status() {
        let driver = || Box::<dyn Error + Send + Sync>::from("password=hunter2");
        let faulted = |fault| PluginCallError::Faulted {
            plugin: "password".to_owned(),
            fault,
        };
        for (failure, status) in [
            (UseCaseError::InputNotFound("/a".to_owned()), 404),
            (UseCaseError::PermissionNotAddable, 404),
            (not_all_regenerated(UseCaseError::IssuerNotFound), 404),
            (UseCaseError::TooManyDerived, 413),
            (faulted(PluginFaultError::OutputTooLarge(1)).into(), 413),
            (faulted(PluginFaultError::NotInstantiated).into(), 503),
            (RepositoryError::Query(driver()).into(), 500),
            (SealError::UsageNotCounted.into(), 503),
        ] {
            assert_eq!(refused(Endpoint::Other, failure), status);
        }
    }

    fn not_all_regenerated(reason: UseCaseError) -> UseCaseError {
        UseCaseError::NotAllRegenerated {
            name: CredentialName::from_stored("/leaf".to_owned()),
            reason: Box::new(reason),
        }
    }

    #[test]
    fn a_full_queue_has_a_retry_after() {
        for (retry_after, header) in [(1_200, "2"), (0, "1"), (3_000, "3")] {
            let retry_after = Duration::from_millis(retry_after);
            let failure = PluginCallError::QueueFull { retry_after }.into();
            let response = ApiError::of(failure, Endpoint::Generate).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()[RETRY_AFTER], header);
        }
    }

    #[test]
    fn the_cause_is_only_logged() {
        let cause = Box::<dyn Error + Send + Sync>::from("connection to 10.0.0.1 refused");
        let failure = ApiError::of(RepositoryError::Query(cause).into(), Endpoint::Other);
        assert_eq!(failure.error, "the storage failed");
    }
}
