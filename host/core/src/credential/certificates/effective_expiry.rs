//! Which certificates stop being valid, and because of which certificate in their chain.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    credential::{CredentialName, Credentials, FindNames, readable::ReadableList},
    permission::Operation,
};

/// The depth of the farthest link of a chain that is looked at. OpenSSL looks no farther either, unless it is told to.
pub const CHAIN_DEPTH_MAX: u32 = 100;

/// When the version in use of a certificate stops being valid: when the first certificate of its chain expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveExpiry {
    /// The certificate's name, in the casing of its first writer.
    pub name: CredentialName,
    /// When its version in use was made: its newest that is not transitional.
    pub version_created_at: DateTime<Utc>,
    /// The link of its chain that expires first; of several, the nearest to the certificate.
    pub link: ChainLink,
}

/// One certificate of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// Its place: 0 is the certificate itself, 1 what signed it, and so on.
    pub depth: u32,
    /// The credential that it belongs to, as far as that is known: a certificate may have been set with an issuer that was
    /// never stored, or with one that the caller may not read.
    pub name: Option<CredentialName>,
    /// The version that it is, as long as that exists.
    pub version_id: Option<Uuid>,
    /// The end of its validity.
    pub expires_at: DateTime<Utc>,
}

impl Credentials {
    /// The certificates that the caller may read whose version in use stops being valid within so many times 24 hours, or
    /// already has, the first to do so before the others. Where it may read nothing, nothing is searched.
    ///
    /// A version's chain is what actually signed it, link by link, whatever versions those authorities have got since. It
    /// ends at a self-signed certificate, where no more is known, or at [`CHAIN_DEPTH_MAX`].
    ///
    /// # Errors
    /// If the query fails.
    pub async fn effective_expiries(
        &self,
        caller: &Caller,
        names: &FindNames,
        within_days: i64,
    ) -> Result<Vec<EffectiveExpiry>, Failure> {
        let until = self.time_in_days(within_days);
        let rules = self.authorization.rules_of(caller).await?;
        if !rules.allow_somewhere(Operation::Read) {
            return Ok(Vec::new());
        }
        let found = self.repository.effective_expiries(names, until).await?;
        let may_read = |name: &CredentialName| rules.allow(Operation::Read, name.as_str());
        let mut expiries = ReadableList::new(caller, &rules);
        let _ = found
            .into_iter()
            .try_for_each(|expiry| expiries.add(expiry));
        let mut expiries = expiries.finish()?;
        for expiry in &mut expiries {
            let link = &mut expiry.link;
            if !link.name.as_ref().is_some_and(may_read) {
                link.name = None;
                link.version_id = None;
            }
        }
        Ok(expiries)
    }
}
