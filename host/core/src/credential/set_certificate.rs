//! Setting a certificate. The host checks it itself: it must read certificates anyway, and the private key of an
//! authority must not enter a guest.

use serde_json::json;

use crate::{
    Failure, Secret,
    authorization::{Caller, Permit},
    credential::{
        CredentialName, CredentialType, CredentialVersion, Credentials, IssuerVersion, LookupName,
        Set,
        authority::member_absent,
        content::Content,
        service::{Draft, MAKINGS_MAX},
        stored_certificate::{members, take_text},
    },
    permission::Operation,
    ports::{AppendCondition, CertificateMembers, ReadVersions},
};

/// Members that clients echo back from responses. They say what the host itself knows better, and are ignored.
const IGNORED_MEMBERS: [&str; 4] = [
    "transitional",
    "certificate_authority",
    "self_signed",
    "generated",
];

impl Credentials {
    pub(super) async fn set_certificate(
        &self,
        caller: &Caller,
        set: Set,
    ) -> Result<CredentialVersion, Failure> {
        self.generator(caller, &set.credential_type)?;
        let members = Members::parse(&set.value)?;
        self.check_alone(&members)?;
        let permit = self
            .authorization
            .permit(caller, Operation::Write, &set.name.lookup())
            .await?;
        let ca_permit = self.permit_ca_name(caller, &members).await?;
        for _ in 0..MAKINGS_MAX {
            let (name, credential_type) = (set.name.clone(), set.credential_type.clone());
            let mut draft = self
                .draft_of_members(name, credential_type, members.clone(), ca_permit.as_ref())
                .await?;
            draft.content.metadata.clone_from(&set.metadata);
            let appended = self.append(&permit, draft, AppendCondition::Always).await?;
            if let Some(version) = appended {
                return Ok(version.into_version(&permit));
            }
        }
        Err(Failure::Contended)
    }

    /// Checks what a caller brings as far as it can be checked without a look at what is stored.
    pub(super) fn check_alone(&self, members: &Members) -> Result<(), Failure> {
        self.certificates.check_members(CertificateMembers {
            ca: members.ca.as_deref(),
            certificate: members.certificate.as_deref(),
            private_key: members.private_key.as_ref(),
            ca_is_stored: false,
        })?;
        Ok(())
    }

    /// Lets the caller use the authority that it names, if it names one.
    pub(super) async fn permit_ca_name<'a>(
        &self,
        caller: &'a Caller,
        members: &Members,
    ) -> Result<Option<Permit<'a>>, Failure> {
        match &members.ca_name {
            Some(ca_name) => {
                let name = LookupName::new(ca_name);
                self.permit_issuer(caller, &name).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Checks what a caller brings, and completes it with the certificate of the authority that it names.
    pub(super) async fn draft_of_members(
        &self,
        name: CredentialName,
        credential_type: CredentialType,
        mut members: Members,
        ca_permit: Option<&Permit<'_>>,
    ) -> Result<Draft, Failure> {
        let signer = match ca_permit {
            Some(ca_permit) => Some(self.stored_authority(ca_permit).await?),
            None => None,
        };
        let ca_is_stored = signer.is_some();
        let mut unchanged = Vec::new();
        let (signer_name, stored_issuer, trusted_ca) = match signer {
            Some(signer) => {
                members.ca = Some(signer.certificate);
                unchanged.push(signer.read);
                (Some(signer.name), signer.issuer, signer.trusted_certificate)
            }
            None => (None, None, None),
        };
        let facts = self.certificates.check_members(CertificateMembers {
            ca: members.ca.as_deref(),
            certificate: members.certificate.as_deref(),
            private_key: members.private_key.as_ref(),
            ca_is_stored,
        })?;
        let is_self_signed = facts.as_ref().is_some_and(|facts| facts.is_self_signed);
        let signed_by = signer_name.or_else(|| is_self_signed.then(|| name.clone()));
        let issuer = if ca_is_stored || is_self_signed {
            stored_issuer
        } else {
            self.issuer_of_text(members.ca.as_deref())?
        };
        Ok(Draft {
            name,
            credential_type,
            is_transitional: false,
            is_generated: Some(false),
            content: Content {
                value: members.to_value(),
                parameters: None,
                metadata: None,
                trusted_ca,
            },
            certificate: facts,
            signed_by,
            issuer,
            provenance: None,
            unchanged,
        })
    }

    /// What is known of an issuer of which there is but the certificate.
    fn issuer_of_text(&self, ca: Option<&str>) -> Result<Option<IssuerVersion>, Failure> {
        let facts = ca.map(|ca| self.certificates.facts(ca)).transpose()?;
        Ok(facts.map(|facts| IssuerVersion {
            version_id: None,
            expires_at: facts.expires_at,
        }))
    }

    /// A stored authority: its newest version that is not transitional must have signed, and the transitional one is
    /// trusted beside it. Nothing is signed now, so it needs no private key.
    async fn stored_authority(&self, permit: &Permit<'_>) -> Result<StoredAuthority, Failure> {
        let current = self.current_versions(permit.name()).await?;
        let read = current.as_read(permit.name());
        let in_use = current
            .in_use
            .filter(|version| version.credential_type.is_certificate())
            .ok_or(Failure::IssuerNotFound)?;
        let trusted = match current.transitional {
            Some(version) => self.certificate_of(permit, version).await?.certificate,
            None => None,
        };
        Ok(StoredAuthority {
            name: in_use.name.clone(),
            issuer: in_use.as_issuer(),
            certificate: self
                .certificate_of(permit, in_use)
                .await?
                .certificate
                .ok_or(member_absent("certificate"))?,
            trusted_certificate: trusted,
            read,
        })
    }
}

/// The authority that `ca_name` names.
struct StoredAuthority {
    name: CredentialName,
    issuer: Option<IssuerVersion>,
    /// The certificate of its version in use, PEM.
    certificate: String,
    /// The certificate of its transitional version, PEM.
    trusted_certificate: Option<String>,
    /// What was read to find it.
    read: ReadVersions,
}

/// What a caller sets, with empty strings already absent.
#[derive(Clone)]
pub(super) struct Members {
    ca: Option<String>,
    ca_name: Option<String>,
    certificate: Option<String>,
    private_key: Option<Secret>,
}

impl Members {
    pub(super) fn parse(value: &Secret) -> Result<Self, Failure> {
        let not_an_object = |_| Failure::ValueRefused("value must be a JSON object".to_owned());
        let mut members = members(value).map_err(not_an_object)?;
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

    pub(super) fn have_certificate(&self) -> bool {
        self.certificate.is_some()
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
