//! Setting a certificate. The host checks it itself: it must read certificates anyway, and the private key of an
//! authority must not enter a guest.

use serde_json::{Map, Value, json};

use crate::{
    Failure, Secret,
    credential::{
        CredentialName, CredentialVersion, Credentials, LookupName, Set, content::Content,
        service::Draft,
    },
    ports::{CertificateMembers, CertificateRefused},
};

/// Members that clients echo back from responses. They say what the host itself knows better, and are ignored.
const IGNORED_MEMBERS: [&str; 4] = [
    "transitional",
    "certificate_authority",
    "self_signed",
    "generated",
];

impl Credentials {
    pub(super) async fn set_certificate(&self, set: Set) -> Result<CredentialVersion, Failure> {
        self.generator(&set.credential_type)?;
        let mut members = Members::parse(&set.value)?;
        let signer = match members.ca_name.take() {
            Some(ca_name) => Some(self.stored_authority(&ca_name).await?),
            None => None,
        };
        let (signer_name, signer_certificate) = signer.unzip();
        let ca_is_stored = signer_certificate.is_some();
        members.ca = signer_certificate.or(members.ca);
        let facts = self.certificates.check_members(CertificateMembers {
            ca: members.ca.as_deref(),
            certificate: members.certificate.as_deref(),
            private_key: members.private_key.as_ref(),
            ca_is_stored,
        })?;
        let is_self_signed = facts.as_ref().is_some_and(|facts| facts.is_self_signed);
        let signed_by = signer_name.or_else(|| is_self_signed.then(|| set.name.clone()));
        self.append_always(Draft {
            name: set.name,
            credential_type: set.credential_type,
            is_generated: false,
            content: Content {
                value: members.to_value(),
                parameters: None,
                metadata: set.metadata,
            },
            certificate: facts,
            signed_by,
            provenance: None,
        })
        .await
    }

    /// The name and the certificate of a stored authority: of its newest version that is not transitional.
    async fn stored_authority(&self, ca_name: &str) -> Result<(CredentialName, String), Failure> {
        let version = self
            .version_in_use(&LookupName::new(ca_name))
            .await?
            .filter(|version| version.credential_type.is_certificate())
            .ok_or(Failure::IssuerNotFound)?;
        let version = self.open(version)?;
        let name = version.stored.name.clone();
        let certificate = StoredCertificate::parse(&version.content.value)?
            .certificate
            .ok_or(Failure::IssuerUnusable(CertificateRefused {
                member: "certificate",
                rule: "is absent",
            }))?;
        Ok((name, certificate))
    }
}

/// What a caller sets, with empty strings already absent.
struct Members {
    ca: Option<String>,
    ca_name: Option<String>,
    certificate: Option<String>,
    private_key: Option<Secret>,
}

impl Members {
    fn parse(value: &Secret) -> Result<Self, Failure> {
        let Ok(Value::Object(mut members)) = serde_json::from_str(value.expose()) else {
            return Err(Failure::ValueRefused(
                "value must be a JSON object".to_owned(),
            ));
        };
        let parsed = Self {
            ca: take_text(&mut members, "ca")?,
            ca_name: take_text(&mut members, "ca_name")?,
            certificate: take_text(&mut members, "certificate")?,
            private_key: take_text(&mut members, "private_key")?.map(Secret::new),
        };
        members.retain(|name, _| !IGNORED_MEMBERS.contains(&name.as_str()));
        if let Some((unknown, _)) = members.into_iter().next() {
            return Err(Failure::ValueMemberUnknown(unknown));
        }
        if parsed.ca.is_some() && parsed.ca_name.is_some() {
            return Err(Failure::ValueRefused(
                "only one of ca and ca_name may be given".to_owned(),
            ));
        }
        let is_empty = parsed.ca.is_none()
            && parsed.ca_name.is_none()
            && parsed.certificate.is_none()
            && parsed.private_key.is_none();
        if is_empty {
            return Err(Failure::ValueRefused(
                "at least one of ca, ca_name, certificate and private_key is required".to_owned(),
            ));
        }
        Ok(parsed)
    }

    fn to_value(&self) -> Secret {
        let private_key = self.private_key.as_ref().map(Secret::expose);
        Secret::new(
            json!({
                "ca": self.ca,
                "certificate": self.certificate,
                "private_key": private_key,
            })
            .to_string(),
        )
    }
}

/// The members of a stored certificate's value.
pub(super) struct StoredCertificate {
    pub(super) ca: Option<String>,
    pub(super) certificate: Option<String>,
    pub(super) private_key: Option<Secret>,
}

impl StoredCertificate {
    pub(super) fn parse(value: &Secret) -> Result<Self, Failure> {
        let Ok(Value::Object(mut members)) = serde_json::from_str(value.expose()) else {
            return Err(Failure::StoredValueMalformed);
        };
        let mut take =
            |name| take_text(&mut members, name).map_err(|_| Failure::StoredValueMalformed);
        Ok(Self {
            ca: take("ca")?,
            certificate: take("certificate")?,
            private_key: take("private_key")?.map(Secret::new),
        })
    }

    /// The members as the checks take them.
    pub(super) fn members(&self) -> CertificateMembers<'_> {
        CertificateMembers {
            ca: self.ca.as_deref(),
            certificate: self.certificate.as_deref(),
            private_key: self.private_key.as_ref(),
            ca_is_stored: false,
        }
    }
}

/// Takes a member that is a text; the empty string and null are absent.
fn take_text(members: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Failure> {
    match members.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(_) => Err(Failure::ValueRefused(format!("{name} must be a string"))),
    }
}
