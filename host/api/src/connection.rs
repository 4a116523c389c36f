//! The properties of a connection.

use std::{net::SocketAddr, sync::Arc};

use keywright_core::certificate::ClientCertificateFacts;

/// The connection of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// The server's address of the connection.
    pub local: SocketAddr,
    /// The client's certificate, if it presented one. The listener has verified its chain, its validity, and that the client has
    /// its private key; [`authentication`](crate::authentication) determines its purpose and identity.
    pub client_certificate: Option<Arc<ClientCertificateFacts>>,
}
