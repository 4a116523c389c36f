//! Detecting that the CA of a version has a new active certificate.

use crate::{
    Failure,
    authorization::Permit,
    credential::{
        Credentials, IssuerVersion, StoredVersion, service::OpenVersion,
        stored_certificate::StoredCertificate,
    },
    permission::Operation,
};

impl Credentials {
    /// Returns whether the CA that signed a version now has another active certificate.
    pub(super) async fn has_new_issuer(
        &self,
        permit: &Permit<'_>,
        version: &OpenVersion,
    ) -> Result<bool, Failure> {
        let Some(signer) = &version.stored.signed_by else {
            return Ok(false);
        };
        if signer.lookup() == version.stored.name.lookup() {
            return Ok(false);
        }
        let signer = signer.lookup();
        let Some(issuer) = self.current_versions(&signer).await?.in_use else {
            return Ok(false);
        };
        // The caller only learns that the CA has changed.
        let permit = permit.extended_to(Operation::Read, &signer);
        if !version.stored.credential_type.is_certificate() {
            return self
                .is_issuer_replaced(&permit, version.stored.issuer, issuer)
                .await;
        }
        let issuer = self.certificate_of(&permit, issuer).await?;
        let ca = StoredCertificate::parse(&version.content.value)?.ca;
        Ok(match (ca, issuer.certificate) {
            (Some(ca), Some(certificate)) => {
                !self.certificates.is_same_certificate(&ca, &certificate)
            }
            _ => false,
        })
    }

    /// Returns whether the CA version that signed for a credential of a type other than certificate has another certificate
    /// than the active version. `false` if the CA version is unknown.
    async fn is_issuer_replaced(
        &self,
        permit: &Permit<'_>,
        signed_with: Option<IssuerVersion>,
        in_use: StoredVersion,
    ) -> Result<bool, Failure> {
        let Some(id) = signed_with.and_then(|issuer| issuer.version_id) else {
            return Ok(false);
        };
        if id == in_use.id {
            return Ok(false);
        }
        let Some(signed_with) = self.repository.version_by_id(id).await? else {
            return Ok(true);
        };
        let signed_with = self.certificate_of(permit, signed_with).await?.certificate;
        let in_use = self.certificate_of(permit, in_use).await?.certificate;
        Ok(match (signed_with, in_use) {
            (Some(signed_with), Some(in_use)) => {
                !self.certificates.is_same_certificate(&signed_with, &in_use)
            }
            _ => true,
        })
    }
}
