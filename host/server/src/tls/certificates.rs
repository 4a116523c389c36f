//! Reads the TLS files, and verifies client certificates in handshakes.

use std::{fs, path::Path, sync::Arc};

use chrono::{DateTime, Utc};
use keywright_core::certificate::ClientAuthorityFacts;
use keywright_crypto::{client_authority_facts, may_issue_for_clients};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{
        CertificateDer, PrivateKeyDer, TrustAnchor, UnixTime,
        pem::{self, PemObject},
    },
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use webpki::{
    EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter, VerifiedPath,
    anchor_from_trusted_cert,
};
use zeroize::Zeroizing;

use crate::{
    config::{TlsConfig, require_readable},
    started::{StartupContext, StartupError},
};

/// Reads the certificates of a PEM file, in order. There must be at least one.
pub(crate) fn read_certificates(
    what: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, StartupError> {
    let doing = format!("reading {what}");
    require_readable(path).on_file(&doing, path)?;
    let refused = |cause| file_refused(&doing, path, cause);
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(refused)?
        .collect::<Result<_, _>>()
        .map_err(refused)?;
    if certificates.is_empty() {
        return Err(StartupError::new(format!(
            "{} contains no certificate",
            path.display()
        )));
    }
    Ok(certificates)
}

/// Reads the server's certificate and the CAs after it, which are part of every handshake.
pub(crate) fn read_server_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, StartupError> {
    let chain = read_certificates("the TLS certificate", path)?;
    let bytes: usize = chain.iter().map(|certificate| certificate.len()).sum();
    if bytes > HANDSHAKE_BYTES_MAX {
        return Err(StartupError::new(format!(
            "the certificates in {} have {bytes} bytes, and clients accept at most {HANDSHAKE_BYTES_MAX}; keep only the server's \
             certificate and the CAs that it needs",
            path.display()
        )));
    }
    Ok(chain)
}

pub(crate) fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, StartupError> {
    let is_encrypted = || {
        let pem = fs::read_to_string(path).map(Zeroizing::new);
        pem.is_ok_and(|pem| pem.contains("ENCRYPTED"))
    };
    let doing = "reading the TLS private key";
    require_readable(path).on_file(doing, path)?;
    PrivateKeyDer::from_pem_file(path).map_err(|cause| match cause {
        _ if is_encrypted() => StartupError::new(format!(
            "the private key in {} is encrypted; store it without a passphrase",
            path.display()
        )),
        pem::Error::NoItemsFound => {
            StartupError::new(format!("{} contains no private key", path.display()))
        }
        cause => file_refused(doing, path, cause),
    })
}

fn file_refused(doing: &str, path: &Path, cause: pem::Error) -> StartupError {
    let cause = match cause {
        pem::Error::Io(cause) => return StartupError::file(doing, path, cause),
        pem::Error::MissingSectionEnd { end_marker } => {
            let label = String::from_utf8_lossy(&end_marker);
            let label = label.trim_end_matches('-');
            format!("it is truncated: the line -----END {label}----- is missing")
        }
        pem::Error::IllegalSectionStart { .. } => "it has a malformed BEGIN line".to_owned(),
        pem::Error::Base64Decode(_) => "it is not valid base64".to_owned(),
        cause => cause.to_string(),
    };
    StartupError::file(doing, path, cause)
}

/// Reads the CAs trusted for another service, and returns the text of the file, which is PEM.
pub(crate) fn read_trusted_authorities(service: &str, path: &Path) -> Result<String, StartupError> {
    let what = format!("the CAs trusted for {service} from");
    let doing = format!("reading {what}");
    for (number, certificate) in (1..).zip(&read_certificates(&what, path)?) {
        let refused =
            |_| StartupError::file(&doing, path, format!("certificate {number} is malformed"));
        anchor_from_trusted_cert(certificate).map_err(refused)?;
    }
    fs::read_to_string(path).on_file(&doing, path)
}

/// Returns the error for a certificate chain and a private key that can't be used together.
pub(crate) fn pair_refused(files: &TlsConfig, cause: &rustls::Error) -> StartupError {
    StartupError::new(match cause {
        rustls::Error::InconsistentKeys(_) => {
            "server.tls.private_key: does not match server.tls.certificate".to_owned()
        }
        rustls::Error::InvalidCertificate(_) => format!(
            "server.tls.certificate: certificate 1 in {} is malformed",
            files.certificate.display()
        ),
        _ => format!(
            "server.tls.private_key: the key in {} is malformed or of an unsupported kind",
            files.private_key.display()
        ),
    })
}

/// Reads the CAs of client certificates. A CA outside its validity period is logged, and trusted as soon as it is
/// valid.
pub(crate) fn read_client_authorities(
    path: &Path,
    now: DateTime<Utc>,
) -> Result<Vec<ClientAuthority>, StartupError> {
    let certificates = read_certificates("the client CAs", path)?;
    let numbered = (1..).zip(&certificates);
    numbered
        .map(|(number, certificate)| client_authority(path, number, certificate, now))
        .collect()
}

fn client_authority(
    path: &Path,
    number: usize,
    certificate: &CertificateDer<'_>,
    now: DateTime<Utc>,
) -> Result<ClientAuthority, StartupError> {
    let refused = |cause: &str| {
        let doing = "using the client CAs";
        StartupError::file(doing, path, format!("certificate {number} {cause}"))
    };
    let facts = client_authority_facts(certificate).ok_or_else(|| refused("can't be read"))?;
    if !facts.is_certificate_authority {
        return Err(refused("is not a CA certificate"));
    }
    if !facts.is_valid_at(now) {
        tracing::warn!(
            server.tls.client_authorities = %path.display(),
            number,
            valid_from = %facts.valid_from,
            expires_at = %facts.expires_at,
            "a CA certificate for clients is not yet valid or has expired: clients with certificates from this CA are rejected"
        );
    }
    let anchor = anchor_from_trusted_cert(certificate)
        .map_err(|_| refused("can't be read"))?
        .to_owned();
    Ok(ClientAuthority { anchor, facts })
}

/// Accepts a client certificate that is valid and chains to a trusted CA, and clients without a certificate.
///
/// It differs from the verifier of rustls in two ways. The purpose of the client's certificate is checked when requests
/// are authenticated, because a response can explain the error and a failed handshake can't. And an invalid validity
/// period is reported by the alert `certificate_unknown`, as clients of this API expect.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    anchors: Vec<TrustAnchor<'static>>,
    authorities: Vec<ClientAuthority>,
    authority_names: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// A trusted CA. It is trusted only while its own certificate is valid, which the anchor does not record.
#[derive(Debug, PartialEq)]
pub(crate) struct ClientAuthority {
    /// The CA's name and key.
    anchor: TrustAnchor<'static>,
    /// Other facts from the CA's certificate.
    pub(crate) facts: ClientAuthorityFacts,
}

impl ClientVerifier {
    pub(super) fn new(
        authorities: Vec<ClientAuthority>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Self {
        let anchors = authorities.iter().map(|authority| authority.anchor.clone());
        let names = authorities
            .iter()
            .map(|authority| DistinguishedName::in_sequence(&authority.anchor.subject));
        let mut authority_names: Vec<_> = names.collect();
        let names_bytes: usize = authority_names.iter().map(|name| name.as_ref().len()).sum();
        if names_bytes > HANDSHAKE_BYTES_MAX {
            // Without names, clients present any certificate.
            authority_names.clear();
        }
        Self {
            anchors: anchors.collect(),
            authority_names,
            authorities,
            algorithms,
        }
    }

    /// Returns whether another verifier trusts the same CAs.
    pub(super) fn trusts_same(&self, other: &Self) -> bool {
        self.authorities == other.authorities
    }

    /// Verifies a chain, and returns the time at which the first CA certificate of the chain expires.
    pub(super) fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<DateTime<Utc>, webpki::Error> {
        if intermediates.len() > INTERMEDIATES_MAX {
            return Err(webpki::Error::MaximumPathDepthExceeded);
        }
        let certificate = EndEntityCert::try_from(certificate)?;
        let path = certificate.verify_for_usage(
            self.algorithms.all,
            &self.anchors,
            intermediates,
            now,
            AnyPurpose,
            None,
            Some(&|path| {
                check_intermediates(path)?;
                self.authority_expires_at(path, now).map(|_| ())
            }),
        )?;
        let intermediates = path
            .intermediate_certificates()
            .filter_map(|authority| client_authority_facts(&authority.der()));
        let expiries = intermediates.map(|facts| facts.expires_at);
        Ok(expiries.fold(self.authority_expires_at(&path, now)?, DateTime::min))
    }

    /// Checks that the CA at the end of a path is valid and allows a path of this length, as every other CA of the path must. If
    /// several CAs share a name and key, as after a renewal, a single one that is valid and allows the path is enough. Returns the
    /// latest expiry of these.
    fn authority_expires_at(
        &self,
        path: &VerifiedPath<'_>,
        now: UnixTime,
    ) -> Result<DateTime<Utc>, webpki::Error> {
        let time = i64::try_from(now.as_secs()).ok();
        let time = time.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        let is_valid =
            |facts: &ClientAuthorityFacts| time.is_some_and(|time| facts.is_valid_at(time));
        let authorities = self.authorities.iter();
        let mut valid = authorities
            .filter(|authority| authority.anchor == *path.anchor())
            .map(|authority| authority.facts)
            .filter(is_valid)
            .peekable();
        if valid.peek().is_none() {
            tracing::warn!(
                "rejected a client: its CA in server.tls.client_authorities is not valid now"
            );
            return Err(webpki::Error::UnknownIssuer);
        }
        let length = u32::try_from(path.intermediate_certificates().count()).unwrap_or(u32::MAX);
        let allows = |facts: &ClientAuthorityFacts| {
            let length_max = facts.path_length_max;
            length_max.is_none_or(|length_max| length <= length_max)
        };
        let expiries = valid.filter(allows).map(|facts| facts.expires_at);
        expiries
            .max()
            .ok_or(webpki::Error::PathLenConstraintViolated)
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
            .map(|_| ClientCertVerified::assertion())
            .map_err(|cause| Error::InvalidCertificate(certificate_error(cause)))
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

/// Maximum number of CA certificates that a client may send. `webpki` tries each order of CAs with the same name, so the time
/// grows exponentially, up to more than a second. The client has not proved yet that it has any trusted certificate.
const INTERMEDIATES_MAX: usize = 6;

/// Maximum size of the server's certificates, and of the names of the client CAs, in a handshake. By default, Java clients refuse a
/// handshake message of more than 32 KiB; other clients refuse 64 KiB.
const HANDSHAKE_BYTES_MAX: usize = 30_000;

/// Accepts any purpose, if the extension is well-formed.
struct AnyPurpose;

impl ExtendedKeyUsageValidator for AnyPurpose {
    fn validate(&self, mut purposes: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        purposes.try_for_each(|purpose| purpose.map(|_| ()))
    }
}

/// Checks that intermediate CAs may issue certificates for clients. A CA for servers only is not trusted.
fn check_intermediates(path: &VerifiedPath<'_>) -> Result<(), webpki::Error> {
    path.intermediate_certificates()
        .all(|authority| may_issue_for_clients(&authority.der()))
        .then_some(())
        .ok_or(webpki::Error::UnknownIssuer)
}

/// Returns the error that selects the alert. `Other` selects `certificate_unknown`, and every other error its own
/// alert.
fn certificate_error(cause: webpki::Error) -> CertificateError {
    match cause {
        webpki::Error::BadDer | webpki::Error::BadDerTime | webpki::Error::TrailingData(_) => {
            CertificateError::BadEncoding
        }
        webpki::Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        webpki::Error::UnknownIssuer => CertificateError::UnknownIssuer,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    }
}
