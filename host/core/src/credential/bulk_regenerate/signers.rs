//! The authorities that sign in a bulk regeneration: stored ones, and those that it has just made.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::permits::Permits;
use crate::{
    Failure,
    credential::{
        CredentialName, Credentials, IssuerVersion, LookupName, StoredVersion,
        authority::{Authority, TransitionalParent},
        regenerate::signer_of,
        stored_certificate::StoredCertificate,
    },
    ports::{NewVersion, ReadVersions},
};

/// An authority that signs.
pub(super) struct Signer {
    /// Which versions it consists of.
    pub(super) versions: SignerVersions,
    /// What signs.
    pub(super) authority: Authority,
}

/// The versions of an authority that made a difference to what it signed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SignerVersions {
    signing_id: Uuid,
    transitional_id: Option<Uuid>,
}

/// An authority's version that is made, and not written yet.
struct Remade {
    name: CredentialName,
    version_id: Uuid,
    expires_at: Option<DateTime<Utc>>,
    certificate: Arc<StoredCertificate>,
}

/// The authorities that have signed so far, and those that are made and ready to sign, by folded name.
pub(super) struct Signers<'a> {
    credentials: &'a Credentials,
    permits: &'a Permits<'a>,
    ready: HashMap<String, Arc<Signer>>,
    remade: HashMap<String, Remade>,
    read: Vec<ReadVersions>,
}

impl<'a> Signers<'a> {
    pub(super) fn new(credentials: &'a Credentials, permits: &'a Permits<'a>) -> Self {
        Self {
            credentials,
            permits,
            ready: HashMap::new(),
            remade: HashMap::new(),
            read: Vec::new(),
        }
    }

    /// Lets the new version of an authority sign from now on.
    pub(super) fn add(&mut self, version: &NewVersion, certificate: Arc<StoredCertificate>) {
        let folded = version.name.lookup().folded().to_owned();
        self.ready.remove(&folded);
        let remade = Remade {
            name: version.name.clone(),
            version_id: version.id,
            expires_at: version.certificate.as_ref().map(|facts| facts.expires_at),
            certificate,
        };
        self.remade.insert(folded, remade);
    }

    /// What signs a version anew: the new version of the authority that it names, where there is one, or else the one in
    /// use; nothing for a version that signs itself.
    pub(super) async fn of(
        &mut self,
        base: &StoredVersion,
    ) -> Result<Option<Arc<Signer>>, Failure> {
        let Some(name) = signer_of(base).map(CredentialName::lookup) else {
            return Ok(None);
        };
        if let Some(signer) = self.ready.get(name.folded()) {
            return Ok(Some(Arc::clone(signer)));
        }
        let signer = Arc::new(self.look_up(&name).await?);
        let folded = name.folded().to_owned();
        self.ready.insert(folded, Arc::clone(&signer));
        Ok(Some(signer))
    }

    /// The versions that were read, which must be the same when what they signed is written.
    pub(super) fn into_read_versions(self) -> Vec<ReadVersions> {
        self.read
    }

    async fn look_up(&mut self, name: &LookupName) -> Result<Signer, Failure> {
        let permit = self.permits.to_sign_with(name)?;
        let current = self.credentials.current_versions(name).await?;
        let read = current.as_read(name);
        self.read.push(read.clone());
        let transitional_id = current.transitional.as_ref().map(|version| version.id);
        let Some(remade) = self.remade.get(name.folded()) else {
            let in_use = current.in_use.as_ref();
            let signing_id = in_use.ok_or(Failure::IssuerNotFound)?.id;
            let authority = self
                .credentials
                .authority_of(&permit, current, TransitionalParent::MayNotSign)
                .await?;
            return Ok(Signer {
                versions: SignerVersions {
                    signing_id,
                    transitional_id,
                },
                authority,
            });
        };
        let trusted = match current.transitional {
            Some(version) => {
                self.credentials
                    .certificate_of(&permit, version)
                    .await?
                    .certificate
            }
            None => None,
        };
        Ok(Signer {
            versions: SignerVersions {
                signing_id: remade.version_id,
                transitional_id,
            },
            authority: Authority::new(
                remade.name.clone(),
                remade.expires_at.map(|expires_at| IssuerVersion {
                    version_id: Some(remade.version_id),
                    expires_at,
                }),
                remade.certificate.as_ref().clone(),
                trusted,
                read,
            )?,
        })
    }
}
