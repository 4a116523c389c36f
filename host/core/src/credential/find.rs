//! Searching for credentials by path or by a part of their names.

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    Failure,
    authorization::{Caller, Rules},
    credential::{CredentialName, Credentials, PathPrefix, PluginDigest, readable::ReadableList},
    permission::Operation,
};

/// Which credentials a search asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    /// What their names have in common.
    pub names: FindNames,
    /// When given: only credentials with a certificate, whatever their type, whose newest version, of any kind, expires at
    /// this time or before.
    pub expires_until: Option<DateTime<Utc>>,
}

/// What the names that a search finds have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindNames {
    /// They are strictly below this path.
    Below(PathPrefix),
    /// They contain this text, already folded to lower case; every character stands for itself.
    Containing(String),
}

/// A credential that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCredential {
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
    /// When its newest version that is not transitional was made; in a search by expiry, its newest version of any kind.
    pub version_created_at: DateTime<Utc>,
    /// In a search by expiry: when that version expires.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A credential of which a plugin made a version that counts: the newest one, the one in use, or the transitional one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedCredential {
    /// The credential, with the time of the version in use, or of the newest one where none is in use.
    pub found: FoundCredential,
    /// Whether the newest version is one that the plugin made. Where it is not, what replaces the plugin's version is there
    /// already.
    pub is_newest: bool,
}

impl FindNames {
    /// Names below a path, as a caller writes it.
    #[must_use]
    pub fn below(path: &str) -> Self {
        Self::Below(PathPrefix::new(path))
    }

    /// Names that contain a text, as a caller writes it.
    #[must_use]
    pub fn containing(text: &str) -> Self {
        Self::Containing(text.to_ascii_lowercase())
    }
}

impl Credentials {
    /// Finds the credentials that the caller may read, newest first; with `expires_within_days`, those with a
    /// certificate, whatever their type, that expire within so many times 24 hours, or already have. Where it may read
    /// nothing, nothing is searched.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn find(
        &self,
        caller: &Caller,
        names: FindNames,
        expires_within_days: Option<i64>,
    ) -> Result<Vec<FoundCredential>, Failure> {
        let expires_until = expires_within_days.map(|days| self.time_in_days(days));
        let find = Find {
            names,
            expires_until,
        };
        let rules = self.authorization.rules_of(caller).await?;
        if !rules.allow_somewhere(Operation::Read) {
            return Ok(Vec::new());
        }
        let mut found = ReadableList::new(caller, &rules);
        let mut receive = |credential| found.add(credential);
        self.repository.find(&find, &mut receive).await?;
        found.finish()
    }

    /// Finds the credentials that the caller may read and of which the plugin with this digest made a version that counts,
    /// newest first.
    ///
    /// # Errors
    /// If the query fails.
    pub async fn find_generated_by(
        &self,
        caller: &Caller,
        digest: &PluginDigest,
        names: &FindNames,
    ) -> Result<Vec<FoundCredential>, Failure> {
        let rules = self.authorization.rules_of(caller).await?;
        let generated = self.readable_generated_by(&rules, digest, names).await?;
        let mut found = ReadableList::new(caller, &rules);
        let _ = generated
            .into_iter()
            .try_for_each(|one| found.add(one.found));
        found.finish()
    }

    /// As [`Credentials::find_generated_by`], with what tells whether they are to be made anew.
    pub(super) async fn readable_generated_by(
        &self,
        rules: &Rules,
        digest: &PluginDigest,
        names: &FindNames,
    ) -> Result<Vec<GeneratedCredential>, Failure> {
        if !rules.allow_somewhere(Operation::Read) {
            return Ok(Vec::new());
        }
        let mut generated = self.repository.generated_by(digest, names).await?;
        generated.retain(|one| rules.allow(Operation::Read, one.found.name.as_str()));
        Ok(generated)
    }

    /// The time so many days from now; a time out of range becomes the nearest one that is in it.
    pub(super) fn time_in_days(&self, days: i64) -> DateTime<Utc> {
        let farthest = if days < 0 {
            DateTime::<Utc>::MIN_UTC
        } else {
            DateTime::<Utc>::MAX_UTC
        };
        TimeDelta::try_days(days)
            .and_then(|delta| self.clock.now().checked_add_signed(delta))
            .unwrap_or(farthest)
    }
}
