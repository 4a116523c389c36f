//! Finding certificates by the earliest expiry in their chain.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    Failure,
    authorization::Caller,
    credential::{CredentialName, Credentials, FindNames, readable::ReadableList},
    permission::Operation,
};

/// The maximum depth of a chain, the default of OpenSSL. Deeper links are ignored.
pub const CHAIN_DEPTH_MAX: u32 = 100;

/// The effective expiry of a certificate's active version: the earliest expiry in its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveExpiry {
    /// The certificate's name, in the casing of its first writer.
    pub name: CredentialName,
    /// The time when its active version was created.
    pub version_created_at: DateTime<Utc>,
    /// The link of its chain that expires first; of several, the link nearest to the certificate.
    pub link: ChainLink,
}

/// One certificate of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// Its depth: 0 is the certificate itself, 1 its issuer, and so on.
    pub depth: u32,
    /// The credential that it belongs to. `None` if the issuer was never stored, or the caller may not read it.
    pub name: Option<CredentialName>,
    /// Its version, while that exists.
    pub version_id: Option<Uuid>,
    /// The end of its validity.
    pub expires_at: DateTime<Utc>,
}

impl Credentials {
    /// Returns the certificates that the caller may read and whose active version effectively expires within this many times
    /// 24 hours, or already has, ordered by expiry. Sends no query if the caller may read no credential.
    ///
    /// A version's chain consists of the CA versions that actually signed, even if the CAs have newer versions. It ends at a
    /// self-signed certificate, at an unknown issuer, or at [`CHAIN_DEPTH_MAX`].
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
        let may_read = |name: &CredentialName| rules.allow(Operation::Read, name.as_str());
        let mut expiries = ReadableList::new(caller, &rules);
        let mut receive = |mut expiry: EffectiveExpiry| {
            let link = &mut expiry.link;
            if !link.name.as_ref().is_some_and(may_read) {
                link.name = None;
                link.version_id = None;
            }
            expiries.add(expiry)
        };
        let finding = self
            .repository
            .effective_expiries(names, until, &mut receive);
        finding.await?;
        expiries.finish()
    }
}
