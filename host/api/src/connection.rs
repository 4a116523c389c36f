//! What the listener knows of a connection.

use std::{net::SocketAddr, sync::Arc};

use keywright_core::certificate::ClientCertificateFacts;

/// What the listener knows of the connection that a request came over. It puts it into the extensions of each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// The server's own address, as the client reached it.
    pub local: SocketAddr,
    /// The certificate that the client presented, if it did. The listener has verified its chain and its validity, and that
    /// the client has its private key; what it is for and whose it is, [`authentication`](crate::authentication) decides.
    pub client_certificate: Option<Arc<ClientCertificateFacts>>,
}
