//! The versions of authorities that signed, kept for those that come after: most have signed many.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{reading::unless_away, version::VersionJudge};
use crate::{
    credential::CredentialName,
    ports::{CheckedRow, RepositoryFailure},
};

/// The versions that were looked up last; none where one is not there, or can't be read.
#[derive(Default)]
pub(super) struct Issuers {
    known: HashMap<Uuid, Option<Arc<Issuer>>>,
}

/// A version that signs.
pub(super) struct Issuer {
    /// The name of its credential.
    pub(super) name: CredentialName,
    /// Its certificate, PEM.
    pub(super) certificate: String,
    /// The end of the validity of that.
    pub(super) expires_at: DateTime<Utc>,
}

impl Issuers {
    /// The version with this id.
    pub(super) async fn issuer(
        &mut self,
        judge: &VersionJudge<'_>,
        id: Uuid,
    ) -> Result<Option<Arc<Issuer>>, RepositoryFailure> {
        if let Some(known) = self.known.get(&id) {
            return Ok(known.clone());
        }
        let issuer = look_up(judge, id).await?.map(Arc::new);
        if self.known.len() >= ISSUERS_MAX {
            self.known.clear();
        }
        self.known.insert(id, issuer.clone());
        Ok(issuer)
    }
}

async fn look_up(judge: &VersionJudge<'_>, id: Uuid) -> Result<Option<Issuer>, RepositoryFailure> {
    // That it can't be read is told of the version itself.
    let read = unless_away(judge.repository.version_by_id(id).await)?;
    let Some(version) = read.unwrap_or_default() else {
        return Ok(None);
    };
    let CheckedRow::Read(stored) = version.stored else {
        return Ok(None);
    };
    Ok(judge
        .certificate_of(&stored)
        .map(|(certificate, facts)| Issuer {
            name: stored.name,
            certificate,
            expires_at: facts.expires_at,
        }))
}

/// The most that are kept.
const ISSUERS_MAX: usize = 256;
