//! What the server supplies.

use std::{sync::Arc, time::Duration};

use keywright_core::{
    credential::Credentials, encryption_key::EncryptionKeys, interpolation::Interpolation,
    permission::Permissions, response_memory::ResponseMemory,
};

use crate::{
    ServerMode, admission::RequestLimits, audit::AuditTrail, authentication::TokenVerifier,
    development_identity::DevelopmentIdentity,
};

/// Everything that the HTTP edge needs.
pub struct Api {
    /// What can be done with credentials.
    pub credentials: Credentials,
    /// What can be done with permissions.
    pub permissions: Permissions,
    /// What can be asked of encryption keys.
    pub encryption_keys: EncryptionKeys,
    /// What interpolates documents; without it, `POST /api/v1/interpolate` answers 501.
    pub interpolation: Interpolation,
    /// What checks bearer tokens; without it, none is accepted.
    pub token_verifier: Option<TokenVerifier>,
    /// Where it is written down who touched what; without it, that is not.
    pub audit: Option<Arc<AuditTrail>>,
    /// What the server says of itself.
    pub information: Information,
    /// How much of a request's body is taken.
    pub limits: Limits,
    /// Which requests are taken.
    pub request_limits: RequestLimits,
    /// The memory that responses share.
    pub response_memory: Arc<ResponseMemory>,
    /// The server's mode, and who may switch it.
    pub server_mode: ServerMode,
    /// The built-in identity provider, which only a development configuration has.
    pub development_identity: Option<DevelopmentIdentity>,
}

/// What the server says of itself.
#[derive(Clone, Debug)]
pub struct Information {
    /// The address of the trusted identity provider, for `GET /info`.
    pub identity_provider_url: String,
    /// The name of the application, for `GET /info`.
    pub application_name: String,
    /// The level of the API that clients compare, for `GET /version`: see [`Information::API_LEVEL`].
    pub api_level: String,
}

impl Information {
    /// The level of the API that is served. Clients use metadata from 2.6.0 on, and a client that is told a level below
    /// 2.0 sends what this server refuses.
    pub const API_LEVEL: &str = "2.15.0";
}

/// How much of a request's body is taken.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest body, in bytes; a larger one is answered with 413.
    pub body_bytes_max: usize,
    /// How long a body may take to arrive; a slower one is answered with 408.
    pub body_deadline: Duration,
}
