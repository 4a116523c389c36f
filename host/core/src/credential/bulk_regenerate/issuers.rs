//! The CAs that sign in a bulk regeneration: stored CAs, and CAs that it has just regenerated.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::select::Permits;
use crate::{
    Failure,
    credential::{
        CredentialName, IssuerVersion, LookupName, StoredVersion,
        authority::{Authority, TransitionalParent},
        content::StoredCertificate,
        regenerate::signer_of,
        version_store::VersionStore,
    },
    ports::{NewVersion, ReadVersions},
};

/// A signing CA.
pub(super) struct Signer {
    /// The versions of the CA that affect its signatures.
    pub(super) versions: SignerVersions,
    /// The CA, ready to sign.
    pub(super) authority: Authority,
}

/// The versions of a CA that affect the certificates that it signs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SignerVersions {
    signing_id: Uuid,
    transitional_id: Option<Uuid>,
}

/// A regenerated CA version that is not written yet.
struct RegeneratedAuthority {
    name: CredentialName,
    version_id: Uuid,
    expires_at: Option<DateTime<Utc>>,
    certificate: Arc<StoredCertificate>,
}

/// The CAs that have signed so far, and the regenerated CAs that are ready to sign, by folded name.
pub(super) struct Signers<'a> {
    store: &'a VersionStore,
    permits: &'a Permits<'a>,
    ready: HashMap<String, Arc<Signer>>,
    regenerated: HashMap<String, RegeneratedAuthority>,
    read: Vec<ReadVersions>,
}

impl<'a> Signers<'a> {
    pub(super) fn new(store: &'a VersionStore, permits: &'a Permits<'a>) -> Self {
        Self {
            store,
            permits,
            ready: HashMap::new(),
            regenerated: HashMap::new(),
            read: Vec::new(),
        }
    }

    /// Uses the new version of a CA for all further signatures.
    pub(super) fn add(&mut self, version: &NewVersion, certificate: Arc<StoredCertificate>) {
        let folded = version.name.lookup().folded().to_owned();
        self.ready.remove(&folded);
        let regenerated = RegeneratedAuthority {
            name: version.name.clone(),
            version_id: version.id,
            expires_at: version.certificate.as_ref().map(|facts| facts.expires_at),
            certificate,
        };
        self.regenerated.insert(folded, regenerated);
    }

    /// Returns the signer of the new version of a credential: the regenerated CA version if there is one, otherwise the
    /// active version of the CA. `None` for a self-signed version.
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

    /// Returns the CA versions that must be unchanged when the new versions are written.
    pub(super) fn into_read_versions(self) -> Vec<ReadVersions> {
        self.read
    }

    async fn look_up(&mut self, name: &LookupName) -> Result<Signer, Failure> {
        let permit = self.permits.to_sign_with(name)?;
        let current = self.store.active_versions(name).await?;
        let read = current.as_read(name);
        self.read.push(read.clone());
        let transitional_id = current.transitional.as_ref().map(|version| version.id);
        let Some(regenerated) = self.regenerated.get(name.folded()) else {
            let active = current.active.as_ref();
            let signing_id = active.ok_or(Failure::IssuerNotFound)?.id;
            let authority = self
                .store
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
                self.store
                    .certificate_of(&permit, version)
                    .await?
                    .certificate
            }
            None => None,
        };
        Ok(Signer {
            versions: SignerVersions {
                signing_id: regenerated.version_id,
                transitional_id,
            },
            authority: Authority::new(
                regenerated.name.clone(),
                regenerated.expires_at.map(|expires_at| IssuerVersion {
                    version_id: Some(regenerated.version_id),
                    expires_at,
                }),
                regenerated.certificate.as_ref().clone(),
                trusted,
                read,
            )?,
        })
    }
}
