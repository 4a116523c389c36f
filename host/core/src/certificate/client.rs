//! What a certificate says of the client that presents it.

/// What a certificate says of the client that presents it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificateFacts {
    /// The Organization Units of its subject, in their order, those of multi-valued names included. One that is not written
    /// in UTF-8 or a part of it is left out.
    pub organization_units: Vec<String>,
    /// Whether its extended key usage names client authentication (RFC 5280, section 4.2.1.12). One that is absent, or that
    /// names any purpose, does not.
    pub is_for_client_authentication: bool,
}
