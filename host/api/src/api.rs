//! The services behind the HTTP API, and the properties of a connection.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use keywright_core::{
    certificate::ClientCertificateFacts, credential::Credentials, encryption_key::EncryptionKeys,
    interpolation::Interpolation, permission_management::Permissions,
    response_memory::ResponseMemory,
};

use crate::{
    ServerMode, UserInterface, admission::RequestLimits, audit::AuditTrail,
    authentication::TokenVerifier, development_identity::DevelopmentIdentity,
    routes::health::HealthCheck,
};

/// The services behind the HTTP API.
pub struct Api {
    /// The use cases of credentials.
    pub credentials: Arc<Credentials>,
    /// The use cases of permissions.
    pub permissions: Permissions,
    /// The use cases of encryption keys.
    pub encryption_keys: EncryptionKeys,
    /// Interpolates documents. Without a resolver, `POST /api/v1/interpolate` returns status 501.
    pub interpolation: Interpolation,
    /// Verifies bearer tokens. `None` rejects all of them.
    pub token_verifier: Option<Arc<TokenVerifier>>,
    /// The audit trail, if enabled.
    pub audit: Option<Arc<AuditTrail>>,
    /// The proxies whose forwarded client addresses are trusted.
    pub trusted_proxies: Vec<IpAddr>,
    /// Checks the server's health.
    pub health: Arc<HealthCheck>,
    /// Information about the server.
    pub information: Information,
    /// The limits of request bodies.
    pub limits: Limits,
    /// The limits on requests.
    pub request_limits: RequestLimits,
    /// The memory that responses share.
    pub response_memory: Arc<ResponseMemory>,
    /// The server's mode, and the actors that may switch it.
    pub server_mode: ServerMode,
    /// The built-in identity provider of a development configuration.
    pub development_identity: Option<DevelopmentIdentity>,
    /// The user interface for browsers, if enabled.
    pub interface: Option<Arc<dyn UserInterface>>,
}

/// Information about the server.
#[derive(Clone, Debug)]
pub struct Information {
    /// The URL of the trusted identity provider, for `GET /info`.
    pub identity_provider_url: String,
    /// The name of the application, for `GET /info`.
    pub application_name: String,
    /// The API level, for `GET /version`: see [`Information::API_LEVEL`].
    pub api_level: String,
}

impl Information {
    /// The supported API level. Clients send metadata if it is at least 2.6.0. If it were below 2.0, they would send requests that
    /// this server rejects.
    pub const API_LEVEL: &str = "2.15.0";
}

/// The limits of request bodies.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum size of a body, in bytes; a larger one gets status 413.
    pub body_bytes_max: usize,
    /// Maximum time for a body to arrive; a slower one gets status 408.
    pub body_deadline: Duration,
}

/// Returns the network of a client, to which limits apply: its IPv4 address in canonical form, or its /64 network of IPv6, which
/// usually belongs to one client.
pub fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK_MASK).into(),
    }
}

const NETWORK_MASK: u128 = !0 << 64;

/// The connection of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// The server's address.
    pub local: SocketAddr,
    /// The client's certificate, if it presented one. The listener has verified its chain, its validity, and that the client has
    /// its private key; [`authentication`](crate::authentication) determines its purpose and identity.
    pub client_certificate: Option<Arc<ClientCertificateFacts>>,
}
