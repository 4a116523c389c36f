//! A cache of CA versions: most have signed many certificates.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{reading::unless_unavailable, version::VersionChecker};
use crate::{
    credential::CredentialName,
    ports::{CheckedRow, RepositoryFailure},
};

/// The CA versions that were looked up last; `None` if a version does not exist or can't be read.
#[derive(Default)]
pub(super) struct Issuers {
    known: HashMap<Uuid, Option<Arc<Issuer>>>,
}

/// A CA version.
pub(super) struct Issuer {
    /// The name of its credential.
    pub(super) name: CredentialName,
    /// Its certificate, PEM.
    pub(super) certificate: String,
    /// The end of the certificate's validity.
    pub(super) expires_at: DateTime<Utc>,
}

impl Issuers {
    /// Returns the CA version with this id.
    pub(super) async fn issuer(
        &mut self,
        checker: &VersionChecker<'_>,
        id: Uuid,
    ) -> Result<Option<Arc<Issuer>>, RepositoryFailure> {
        if let Some(known) = self.known.get(&id) {
            return Ok(known.clone());
        }
        let issuer = look_up(checker, id).await?.map(Arc::new);
        if self.known.len() >= ISSUERS_MAX {
            self.known.clear();
        }
        self.known.insert(id, issuer.clone());
        Ok(issuer)
    }
}

async fn look_up(
    checker: &VersionChecker<'_>,
    id: Uuid,
) -> Result<Option<Issuer>, RepositoryFailure> {
    // The check of the version itself reports that it can't be read.
    let read = unless_unavailable(checker.repository.version_by_id(id).await)?;
    let Some(version) = read.unwrap_or_default() else {
        return Ok(None);
    };
    let CheckedRow::Read(stored) = version.stored else {
        return Ok(None);
    };
    Ok(checker
        .certificate_of(&stored)
        .map(|(certificate, facts)| Issuer {
            name: stored.name,
            certificate,
            expires_at: facts.expires_at,
        }))
}

/// The maximum number of cached versions.
const ISSUERS_MAX: usize = 256;
