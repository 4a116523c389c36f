//! Adding a version that the caller brings to a certificate.

use uuid::Uuid;

use crate::{
    Failure, Secret,
    credential::{CredentialVersion, Credentials, service::ATTEMPTS_MAX, set_certificate::Members},
    ports::VersionSelection,
};

/// A request to add a version to a certificate.
#[derive(Debug)]
pub struct NewCertificateVersion {
    /// The id of its credential.
    pub certificate_id: Uuid,
    /// The value, as JSON text.
    pub value: Secret,
    /// Whether the version carries the transitional flag.
    pub is_transitional: bool,
}

impl Credentials {
    /// Adds a version with a value that the caller brings. Whether a service made it is not known of such a version.
    ///
    /// # Errors
    /// [`Failure::NotFound`]; [`Failure::TransitionalExists`]; or when the value breaks a rule of certificates, of which
    /// one more holds here: there must be a certificate.
    pub async fn add_certificate_version(
        &self,
        new: NewCertificateVersion,
    ) -> Result<CredentialVersion, Failure> {
        let members = Members::parse(&new.value)?;
        if !members.have_certificate() {
            return Err(Failure::ValueRefused("certificate is required".to_owned()));
        }
        for _ in 0..ATTEMPTS_MAX {
            let newest = self
                .stored_certificate_versions(new.certificate_id, VersionSelection::Newest(1))
                .await?
                .into_iter()
                .next()
                .ok_or(Failure::NotFound)?;
            let mut draft = self
                .draft_of_members(newest.name, newest.credential_type, members.clone())
                .await?;
            draft.is_transitional = new.is_transitional;
            draft.is_generated = None;
            let appended = self
                .append_to_certificate(draft, new.certificate_id)
                .await?;
            if let Some(version) = appended {
                return Ok(version.into_version());
            }
        }
        Err(Failure::Contended)
    }
}
