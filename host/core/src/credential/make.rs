//! Making a value: lending the issuer, calling the generator, and checking what came out.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    Failure, Secret,
    certificate::{CertificateFacts, DURATION_DAYS_MAX, IssuanceRules},
    credential::{
        CredentialName, CredentialType, Credentials, LookupName, Parameters, content::Content,
        service::Draft, set_certificate::StoredCertificate,
    },
    ports::{CertificateIssuer, CertificateRefused, Generator},
};

impl Credentials {
    /// Makes a value from canonical parameters, with everything that is stored with it but metadata.
    pub(super) async fn make_draft(
        &self,
        name: &CredentialName,
        credential_type: &CredentialType,
        parameters: &Parameters,
        generator: &dyn Generator,
    ) -> Result<Draft, Failure> {
        let now = self.now_in_seconds();
        let issuer = match generator
            .issuer_parameter()
            .and_then(|named| parameters.text(named))
        {
            Some(issuer_name) => Some(self.lend_issuer(issuer_name, parameters).await?),
            None => None,
        };
        let (issuer_name, issuer) = issuer.unzip();
        let value = generator.generate(parameters, now, issuer.clone()).await?;
        let is_certificate = credential_type.is_certificate();
        let certificate = if is_certificate {
            Some(self.check_generated(&value, issuer.as_deref())?)
        } else {
            None
        };
        let signed_by = issuer_name.or_else(|| is_certificate.then(|| name.clone()));
        Ok(Draft {
            name: name.clone(),
            credential_type: credential_type.clone(),
            is_generated: true,
            content: Content {
                value,
                parameters: Some(parameters.clone()),
                metadata: None,
            },
            certificate,
            signed_by,
            provenance: Some(generator.identity().clone()),
        })
    }

    /// An issuer out of a stored authority: its newest version that is not transitional.
    async fn lend_issuer(
        &self,
        issuer_name: &str,
        parameters: &Parameters,
    ) -> Result<(CredentialName, Arc<dyn CertificateIssuer>), Failure> {
        let version = self
            .version_in_use(&LookupName::new(issuer_name))
            .await?
            .filter(|version| version.credential_type.is_certificate())
            .ok_or(Failure::IssuerNotFound)?;
        let version = self.open(version)?;
        let authority = StoredCertificate::parse(&version.content.value)?;
        let certificate = authority.certificate.ok_or(absent("certificate"))?;
        let private_key = authority.private_key.ok_or(absent("private_key"))?;
        let issuer = self
            .certificates
            .issuer(&certificate, &private_key, self.issuance_rules(parameters))
            .map_err(Failure::IssuerUnusable)?;
        Ok((version.stored.name, issuer))
    }

    fn issuance_rules(&self, parameters: &Parameters) -> IssuanceRules {
        let duration_days = parameters
            .member("duration")
            .and_then(Value::as_u64)
            .and_then(|days| u32::try_from(days).ok());
        IssuanceRules {
            may_be_authority: parameters.is_true("is_ca"),
            duration_days_max: duration_days.unwrap_or(DURATION_DAYS_MAX),
            now: self.now_in_seconds(),
        }
    }

    fn check_generated(
        &self,
        value: &Secret,
        issuer: Option<&dyn CertificateIssuer>,
    ) -> Result<CertificateFacts, Failure> {
        let certificate = StoredCertificate::parse(value)?;
        let facts = self
            .certificates
            .check_generated(certificate.members(), issuer)
            .map_err(Failure::GeneratedCertificateRefused)?;
        Ok(CertificateFacts {
            is_self_signed: issuer.is_none(),
            ..facts
        })
    }
}

fn absent(member: &'static str) -> Failure {
    Failure::IssuerUnusable(CertificateRefused {
        member,
        rule: "is absent",
    })
}
