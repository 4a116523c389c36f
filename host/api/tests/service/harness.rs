//! A service with fake ports, and requests to it.

use std::{
    sync::{Arc, OnceLock, atomic::AtomicI64},
    time::Duration,
};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der},
    rsa::{KeyPair, KeySize},
    signature::KeyPair as _,
};
use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use keywright_api::{
    Api, HealthCheck, Information, Limits, Pipeline, RequestLimits, ServerMode,
    audit::{AuditSettings, AuditTrail},
    authentication::{TokenRules, TokenVerifier},
    development_identity::{
        DevelopmentClient, DevelopmentIdentity, DevelopmentIdentitySettings, DevelopmentUser,
    },
};
use keywright_core::{
    Secret,
    authorization::Authorization,
    credential::{CertificateSettings, Credentials, VersionStore},
    encryption_key::EncryptionKeys,
    interpolation::Interpolation,
    permission_management::Permissions,
    ports::Clock,
    response_memory::{ResponseLimits, ResponseMemory},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    fakes::{
        CredulousCertificates, EchoGenerators, FixedClock, FixedResolvers, MemorySink, OpenSealer,
        RandomIdentifiers,
    },
    storage::Storage,
};

pub(crate) const ISSUER: &str = "https://localhost/identity";

/// The actor of valid tokens. It may manage the server.
pub(crate) const ACTOR: &str = "uaa-client:app";

/// The initial time of every service, in seconds since 1970.
pub(crate) const NOW_SECONDS: i64 = 1_800_000_000;

/// The limits on bodies.
const LIMITS: Limits = Limits {
    body_bytes_max: 1024 * 1024,
    body_deadline: Duration::from_secs(30),
};

/// The memory limits for responses of a service.
const RESPONSE_LIMITS: ResponseLimits = ResponseLimits {
    response_bytes_max: 1024 * 1024,
    responses_bytes_max: 4 * 1024 * 1024,
    responses_bytes_per_actor_max: 1024 * 1024,
};

pub(crate) const REQUEST_LIMITS: RequestLimits = RequestLimits {
    requests_max: 1_024,
    requests_per_actor_max: 256,
    requests_per_second_max: None,
    uri_bytes_max: 8_192,
    header_fields_max: 100,
};

/// An RSA key, private and public, in PEM.
pub(crate) struct TestKey {
    pub(crate) private_pem: String,
    pub(crate) public_pem: String,
}

impl TestKey {
    pub(crate) fn generate() -> Self {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let private: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        Self {
            private_pem: pem("PRIVATE KEY", private.as_ref()),
            public_pem: pem("PUBLIC KEY", public.as_ref()),
        }
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        let key = EncodingKey::from_rsa_pem(self.private_pem.as_bytes()).unwrap();
        encode(&Header::new(Algorithm::RS256), claims, &key).unwrap()
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

pub(crate) fn trusted_key() -> &'static TestKey {
    static KEY: OnceLock<TestKey> = OnceLock::new();
    KEY.get_or_init(TestKey::generate)
}

/// Returns the claims of a valid token.
pub(crate) fn good_claims() -> Value {
    json!({
        "iss": ISSUER,
        "exp": NOW_SECONDS + 600,
        "iat": NOW_SECONDS,
        "grant_type": "client_credentials",
        "client_id": "app",
        "scope": ["credhub.read", "credhub.write"],
    })
}

pub(crate) struct Service {
    pipeline: Arc<Pipeline>,
    token: String,
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Arc<FixedClock>,
}

pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    /// Returns the `error` field of a body whose fields are all strings.
    pub(crate) fn error(&self) -> String {
        let body = self.json();
        assert!(body.as_object().unwrap().values().all(Value::is_string));
        body["error"].as_str().unwrap().to_owned()
    }
}

impl Service {
    pub(crate) async fn new() -> Self {
        Self::with_certificate_settings(CertificateSettings::default()).await
    }

    pub(crate) async fn audited(
        settings: AuditSettings,
        sink: MemorySink,
    ) -> (Self, Arc<AuditTrail>) {
        Self::audited_within(REQUEST_LIMITS, settings, sink).await
    }

    /// Returns a service with these limits and an audit trail, and the trail.
    pub(crate) async fn audited_within(
        request_limits: RequestLimits,
        settings: AuditSettings,
        sink: MemorySink,
    ) -> (Self, Arc<AuditTrail>) {
        let (clock, verifier) = clock_and_verifier();
        let trail = AuditTrail::start(settings, Box::new(sink), Arc::clone(&clock) as _).unwrap();
        let trail = Arc::new(trail);
        let audited = Some((Arc::clone(&trail), request_limits));
        let service = Self::build(verifier, clock, CertificateSettings::default(), audited).await;
        (service, trail)
    }

    pub(crate) async fn with_certificate_settings(settings: CertificateSettings) -> Self {
        let (clock, verifier) = clock_and_verifier();
        Self::build(verifier, clock, settings, None).await
    }

    async fn build(
        token_verifier: TokenVerifier,
        clock: Arc<FixedClock>,
        certificate_settings: CertificateSettings,
        audited: Option<(Arc<AuditTrail>, RequestLimits)>,
    ) -> Self {
        let (audit, request_limits) = audited.unzip();
        let storage = Arc::new(Storage::create().await);
        let permissions = Arc::new(storage.database.clone());
        let authorization = Authorization::new(Arc::clone(&permissions) as _, true);
        let store = VersionStore {
            repository: Arc::clone(&storage) as _,
            sealer: Arc::new(OpenSealer),
            clock: Arc::clone(&clock) as _,
            identifiers: Arc::new(RandomIdentifiers),
            concatenates_authorities: certificate_settings.concatenates_authorities,
        };
        let credentials = Credentials::new(
            authorization.clone(),
            store.clone(),
            Arc::new(EchoGenerators),
            Arc::new(CredulousCertificates),
            certificate_settings,
        );
        let health = HealthCheck::new(Arc::clone(&storage) as _, audit.clone());
        let api = Api {
            interpolation: Interpolation {
                authorization: authorization.clone(),
                store,
                resolvers: Arc::new(FixedResolvers),
            },
            encryption_keys: EncryptionKeys {
                repository: Arc::new(storage.database.clone()),
                sealer: Arc::new(OpenSealer),
            },
            credentials: Arc::new(credentials),
            permissions: Permissions {
                repository: permissions,
                credentials: Arc::clone(&storage) as _,
                authorization,
            },
            token_verifier: Some(Arc::new(token_verifier)),
            information: Information {
                identity_provider_url: ISSUER.to_owned(),
                application_name: "Keywright".to_owned(),
                api_level: Information::API_LEVEL.to_owned(),
            },
            limits: LIMITS,
            audit,
            trusted_proxies: Vec::new(),
            health,
            server_mode: ServerMode::new([ACTOR.to_owned()]),
            request_limits: request_limits.unwrap_or(REQUEST_LIMITS),
            response_memory: Arc::new(ResponseMemory::new(RESPONSE_LIMITS)),
            development_identity: Some(development_identity(Arc::clone(&clock) as _)),
            interface: None,
        };
        Self {
            pipeline: Arc::new(Pipeline::new(api)),
            token: trusted_key().sign(&good_claims()),
            storage,
            clock,
        }
    }

    /// Returns the pipeline, for use with another listener.
    pub(crate) fn pipeline(&self) -> Arc<Pipeline> {
        Arc::clone(&self.pipeline)
    }

    /// Returns the `authorization` header with a valid token.
    pub(crate) fn token(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Sends a request with a valid token.
    pub(crate) async fn send(&self, method: &str, path: &str, body: impl Into<String>) -> Response {
        let headers = [
            ("authorization", self.token()),
            ("content-type", "application/json".to_owned()),
        ];
        self.send_with(method, path, &headers, body).await
    }

    pub(crate) async fn send_json(&self, method: &str, path: &str, body: &Value) -> Response {
        self.send(method, path, body.to_string()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send("GET", path, "").await
    }

    /// Sends a request with this token, if any.
    pub(crate) async fn get_as(&self, path: &str, token: Option<&str>) -> Response {
        let header = token.map(|token| ("authorization", format!("Bearer {token}")));
        self.send_with("GET", path, header.as_slice(), "").await
    }

    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: impl Into<String>,
    ) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::from(body.into())).unwrap();
        let response = self.pipeline.respond(None, request).await;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Response {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }
}

/// Returns a fixed clock at the initial time, and a token verifier with it and the trusted key.
fn clock_and_verifier() -> (Arc<FixedClock>, TokenVerifier) {
    let clock = Arc::new(FixedClock(AtomicI64::new(NOW_SECONDS)));
    let (key, rules) = (&trusted_key().public_pem, TokenRules::default());
    let verifier = TokenVerifier::with_static_key(key, ISSUER, rules, Arc::clone(&clock) as _);
    (clock, verifier.unwrap())
}

/// The address of the clients of the development identity provider.
const REDIRECT_URI: &str = "https://client.test/back?from=login";

fn development_identity(clock: Arc<dyn Clock>) -> DevelopmentIdentity {
    let client = |id: &str, secret: &str| DevelopmentClient {
        id: id.to_owned(),
        secret: secret.to_owned(),
        redirect_uris: vec![REDIRECT_URI.to_owned()],
    };
    let settings = DevelopmentIdentitySettings {
        signing_key_pem: Secret::new(trusted_key().private_pem.clone()),
        issuer: ISSUER.to_owned(),
        path_prefix: "/identity".to_owned(),
        clients: vec![client("app", "app-secret"), client("credhub_cli", "")],
        users: vec![DevelopmentUser {
            id: Uuid::from_u128(7),
            name: "someone".to_owned(),
            password: "user-password".to_owned(),
        }],
        scopes: ["credhub.read", "credhub.write"]
            .map(str::to_owned)
            .to_vec(),
        access_token_lifetime: Duration::from_mins(10),
        refresh_token_lifetime: Duration::from_hours(24),
    };
    DevelopmentIdentity::new(settings, clock).unwrap()
}
