//! Adding a version with a value from the caller to a certificate.

use uuid::Uuid;

use crate::{
    Failure, Secret,
    authorization::Caller,
    credential::{
        CredentialType, CredentialVersion, Credentials,
        service::MAKINGS_MAX,
        set_certificate::{Members, warn_of_short_key},
    },
    permission::Operation,
    ports::VersionSelection,
};

/// A request to add a version to a certificate.
#[derive(Debug)]
pub struct NewCertificateVersion {
    /// The id of its credential.
    pub certificate_id: Uuid,
    /// The value, as JSON text.
    pub value: Secret,
    /// Whether the version gets the transitional flag.
    pub is_transitional: bool,
}

impl Credentials {
    /// Adds a version with a value from the caller. It is unknown whether a server generated such a version.
    ///
    /// # Errors
    /// [`Failure::NotFound`]; [`Failure::TransitionalExists`]; or if the value breaks a rule for certificates, or has no
    /// `certificate`.
    pub async fn add_certificate_version(
        &self,
        caller: &Caller,
        new: NewCertificateVersion,
    ) -> Result<CredentialVersion, Failure> {
        let members = Members::parse(&new.value)?;
        if !members.have_certificate() {
            return Err(Failure::ValueRefused("certificate is required".to_owned()));
        }
        let generator = self.generator(caller, &CredentialType::certificate())?;
        let checked = self.check(generator.as_ref(), members, None).await?;
        let newest = VersionSelection::Newest(1);
        let (permit, newest) = self
            .permitted_certificate_versions(caller, Operation::Write, new.certificate_id, newest)
            .await?;
        let newest = newest.into_iter().next().ok_or(Failure::NotFound)?;
        let ca_permit = self.permit_ca_name(caller, &checked.members).await?;
        for _ in 0..MAKINGS_MAX {
            let (name, credential_type) = (newest.name.clone(), newest.credential_type.clone());
            let mut draft = self
                .draft_of(
                    name,
                    credential_type,
                    checked.clone(),
                    ca_permit.as_ref(),
                    generator.as_ref(),
                )
                .await?;
            draft.is_transitional = new.is_transitional;
            draft.is_generated = None;
            let appended = self
                .append_to_certificate(&permit, draft, new.certificate_id)
                .await?;
            if let Some(version) = appended {
                warn_of_short_key(&newest.name, checked.rsa_bits);
                return Ok(version.into_version(&permit));
            }
        }
        Err(Failure::Contended)
    }
}
