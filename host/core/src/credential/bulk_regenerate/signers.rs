//! The CAs that sign during a bulk regeneration: stored CAs, and CAs that were just regenerated.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::select::Permits;
use crate::{
    UseCaseError,
    credential::{
        CredentialName, IssuerVersion, LookupName, Parameters, RegenerateCredentials,
        StoredVersion,
        regenerate::signer_of,
        version_store::{Authority, StoredCertificate, TransitionalParent},
    },
    ports::{Generator, NewVersion, ReadVersions},
};

/// A CA that signs new versions.
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

/// The CAs of a bulk regeneration, by folded name.
///
/// While the credentials are checked, the new versions of the CAs among them do not exist yet, so these CAs are only planned.
pub(super) struct Signers<'a> {
    regenerate: &'a RegenerateCredentials,
    permits: &'a Permits<'a>,
    /// The CAs that can sign; `None` for a planned CA.
    ready: HashMap<String, Option<Arc<Signer>>>,
    planned: HashSet<String>,
    regenerated: HashMap<String, RegeneratedAuthority>,
    /// The CA versions that must be unchanged when the new versions are written.
    pub(super) read: Vec<ReadVersions>,
}

impl<'a> Signers<'a> {
    pub(super) fn new(regenerate: &'a RegenerateCredentials, permits: &'a Permits<'a>) -> Self {
        Self {
            regenerate,
            permits,
            ready: HashMap::new(),
            planned: HashSet::new(),
            regenerated: HashMap::new(),
            read: Vec::new(),
        }
    }

    /// Expects a new version of a CA, which will sign.
    pub(super) fn plan(&mut self, folded: String) {
        self.ready.remove(&folded);
        self.planned.insert(folded);
    }

    /// Ends the checks: from now on, a stored CA signs until [`Signers::add`] replaces it.
    pub(super) fn end_checks(&mut self) {
        self.planned.clear();
        self.ready.retain(|_, signer| signer.is_some());
    }

    /// Uses the new version of a CA for all further signatures.
    pub(super) fn add(&mut self, version: &NewVersion, certificate: Arc<StoredCertificate>) {
        let folded = version.name.folded();
        self.ready.remove(&folded);
        let regenerated = RegeneratedAuthority {
            name: version.name.clone(),
            version_id: version.id,
            expires_at: version
                .attributes
                .certificate
                .as_ref()
                .map(|facts| facts.expires_at),
            certificate,
        };
        self.regenerated.insert(folded, regenerated);
    }

    /// Returns the signer of the new version of a credential: the regenerated CA version if there is one, otherwise the
    /// active version of the CA, which must be able to sign. `None` for a self-signed version, or if the CA is planned.
    pub(super) async fn of(
        &mut self,
        base: &StoredVersion,
        generator: &dyn Generator,
    ) -> Result<Option<Arc<Signer>>, UseCaseError> {
        let Some(name) = signer_of(&base.name, &base.attributes).map(CredentialName::lookup) else {
            return Ok(None);
        };
        if let Some(signer) = self.ready.get(name.folded()) {
            return Ok(signer.clone());
        }
        let signer = self.look_up(&name, generator).await?.map(Arc::new);
        self.ready.insert(name.folded().to_owned(), signer.clone());
        Ok(signer)
    }

    async fn look_up(
        &mut self,
        name: &LookupName,
        generator: &dyn Generator,
    ) -> Result<Option<Signer>, UseCaseError> {
        let store = &self.regenerate.store;
        let permit = self.permits.to_sign_with(name)?;
        let current = store.active_versions(name).await?;
        let read = current.as_read(name);
        self.read.push(read.clone());
        let transitional_id = current.transitional.as_ref().map(|version| version.id);
        let is_planned = self.planned.contains(name.folded());
        let regenerated = self.regenerated.get(name.folded());
        if regenerated.is_none() && !is_planned {
            let active = current.active.as_ref();
            let signing_id = active.ok_or(UseCaseError::IssuerNotFound)?.id;
            let authority = store
                .authority(&permit, current, TransitionalParent::MayNotSign)
                .await?;
            // The rules of the certificates don't matter: this only checks the certificate and the key of the CA.
            let generation = &self.regenerate.generation;
            generation
                .issuer(
                    &authority,
                    &Parameters::default(),
                    generation.now(),
                    generator,
                )
                .await?;
            return Ok(Some(Signer {
                versions: SignerVersions {
                    signing_id,
                    transitional_id,
                },
                authority,
            }));
        }
        let trusted = match current.transitional {
            Some(version) => store.certificate_of(&permit, version).await?.certificate,
            None => None,
        };
        let Some(regenerated) = regenerated else {
            return Ok(None);
        };
        let issuer = regenerated.expires_at.map(|expires_at| IssuerVersion {
            version_id: Some(regenerated.version_id),
            expires_at,
        });
        let certificate = regenerated.certificate.as_ref().clone();
        Ok(Some(Signer {
            versions: SignerVersions {
                signing_id: regenerated.version_id,
                transitional_id,
            },
            authority: Authority::new(
                regenerated.name.clone(),
                issuer,
                certificate,
                trusted,
                read,
            )?,
        }))
    }
}
