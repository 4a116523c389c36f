//! Which client certificates a handshake takes.

use std::sync::Arc;

use chrono::DateTime;
use keywright_core::certificate::ClientAuthorityFacts;
use keywright_crypto::may_issue_for_clients;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, TrustAnchor, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter, VerifiedPath};

/// Takes a client certificate that has a chain to a trusted authority and is valid now, and clients that present none.
///
/// It differs from the verifier that rustls brings in two ways. What the client's own certificate is for is left to the
/// authentication of requests, which can tell the caller about it, as a failed handshake can't. And what is wrong with a
/// certificate's validity is told by the alert `certificate_unknown`, as clients expect it of this API.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    anchors: Vec<TrustAnchor<'static>>,
    authorities: Vec<ClientAuthority>,
    authority_names: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// An authority whose clients are let in, while its own certificate is valid: an anchor says nothing about that.
#[derive(Debug)]
pub(super) struct ClientAuthority {
    /// Its name and its key.
    pub(super) anchor: TrustAnchor<'static>,
    /// What its certificate says besides.
    pub(super) facts: ClientAuthorityFacts,
}

impl ClientVerifier {
    /// Trusts these authorities.
    pub(super) fn new(
        authorities: Vec<ClientAuthority>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Self {
        let anchors = authorities.iter().map(|authority| authority.anchor.clone());
        let names = authorities
            .iter()
            .map(|authority| DistinguishedName::in_sequence(&authority.anchor.subject));
        Self {
            anchors: anchors.collect(),
            authority_names: names.collect(),
            authorities,
            algorithms,
        }
    }

    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), webpki::Error> {
        EndEntityCert::try_from(certificate)?
            .verify_for_usage(
                self.algorithms.all,
                &self.anchors,
                intermediates,
                now,
                AnyPurpose,
                None,
                Some(&|path| {
                    check_intermediates(path)?;
                    self.check_authority(path.anchor(), now)
                }),
            )
            .map(|_| ())
    }

    /// The authority that a path ends in must be valid, as every other certificate of it must. Where two have the same name
    /// and key, as a renewed one has, one that is valid is enough.
    fn check_authority(
        &self,
        anchor: &TrustAnchor<'_>,
        now: UnixTime,
    ) -> Result<(), webpki::Error> {
        let authorities = self.authorities.iter();
        let mut facts = authorities
            .filter(|authority| authority.anchor == *anchor)
            .map(|authority| authority.facts);
        let time = i64::try_from(now.as_secs()).ok();
        let time = time.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        let is_valid = time.is_some_and(|time| facts.any(|facts| facts.is_valid_at(time)));
        if !is_valid {
            tracing::warn!(
                "a client was refused whose authority, one of server.tls.client_authorities, is not valid now"
            );
            return Err(webpki::Error::UnknownIssuer);
        }
        Ok(())
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.authority_names
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(end_entity, intermediates, now)
            .map(|()| ClientCertVerified::assertion())
            .map_err(|cause| Error::InvalidCertificate(told(cause)))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Leaves it open what a certificate is for, as long as it is said in order.
struct AnyPurpose;

impl ExtendedKeyUsageValidator for AnyPurpose {
    fn validate(&self, mut purposes: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        purposes.try_for_each(|purpose| purpose.map(|_| ()))
    }
}

/// An authority between the client and a trusted one, which may be anybody's, must be one that may issue for clients. One
/// for servers alone is as good as a stranger.
fn check_intermediates(path: &VerifiedPath<'_>) -> Result<(), webpki::Error> {
    path.intermediate_certificates()
        .all(|authority| may_issue_for_clients(&authority.der()))
        .then_some(())
        .ok_or(webpki::Error::UnknownIssuer)
}

/// What the client is told: each of these has an alert of its own, and `Other` is `certificate_unknown`.
fn told(cause: webpki::Error) -> CertificateError {
    match cause {
        webpki::Error::BadDer | webpki::Error::BadDerTime | webpki::Error::TrailingData(_) => {
            CertificateError::BadEncoding
        }
        webpki::Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        webpki::Error::UnknownIssuer => CertificateError::UnknownIssuer,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    }
}
