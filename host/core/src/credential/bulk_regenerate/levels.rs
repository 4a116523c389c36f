//! Finding all credentials below a CA, level by level, each once.

use std::collections::HashSet;

use super::too_many_signed;
use crate::{
    Failure,
    credential::{BULK_CERTIFICATES_MAX, Credentials, LookupName, StoredVersion},
    ports::{ReadSigned, SignedName, SignedTypes},
};

impl Credentials {
    /// Returns the newest version of each credential below a CA, each once, and the query results. Sends one query per
    /// level.
    pub(super) async fn all_signed_by(
        &self,
        signed_by: &LookupName,
    ) -> Result<(Vec<StoredVersion>, Vec<ReadSigned>), Failure> {
        let mut levels = Levels::below(signed_by);
        let mut read = Vec::new();
        while let Some(signers) = levels.next_signers() {
            let level = self
                .repository
                .newest_signed_by(&signers, SignedTypes::All, ROWS_MAX)
                .await?;
            read.push(ReadSigned::new(signers, SignedTypes::All, &level));
            levels.add(level)?;
        }
        Ok((levels.found, read))
    }

    /// Like [`Credentials::all_signed_by`], but returns only the names.
    pub(super) async fn names_signed_by(
        &self,
        signed_by: &LookupName,
    ) -> Result<Vec<SignedName>, Failure> {
        let mut levels = Levels::below(signed_by);
        while let Some(signers) = levels.next_signers() {
            let level = self
                .repository
                .names_signed_by(&signers, SignedTypes::All, ROWS_MAX)
                .await?;
            levels.add(level)?;
        }
        Ok(levels.found)
    }
}

/// A credential of a level.
pub(super) trait Signed {
    fn name(&self) -> LookupName;

    /// Returns whether it may have signed a next level.
    fn is_authority(&self) -> bool;
}

impl Signed for StoredVersion {
    fn name(&self) -> LookupName {
        self.name.lookup()
    }

    fn is_authority(&self) -> bool {
        self.is_authority()
    }
}

impl Signed for SignedName {
    fn name(&self) -> LookupName {
        self.name.lookup()
    }

    fn is_authority(&self) -> bool {
        self.is_authority
    }
}

/// The credentials found so far.
struct Levels<T> {
    /// Folded names, including the first CA's.
    seen: HashSet<String>,
    found: Vec<T>,
    /// The CAs of the last level.
    signers: Vec<LookupName>,
}

impl<T: Signed> Levels<T> {
    fn below(authority: &LookupName) -> Self {
        Self {
            seen: HashSet::from([authority.folded().to_owned()]),
            found: Vec::new(),
            signers: vec![authority.clone()],
        }
    }

    /// Returns the signers of the next level, or `None` after the last level.
    fn next_signers(&mut self) -> Option<Vec<LookupName>> {
        Some(std::mem::take(&mut self.signers)).filter(|signers| !signers.is_empty())
    }

    /// Adds the credentials below the last signers, except those already found.
    fn add(&mut self, level: Vec<T>) -> Result<(), Failure> {
        for signed in level {
            let name = signed.name();
            if !self.seen.insert(name.folded().to_owned()) {
                continue;
            }
            if signed.is_authority() {
                self.signers.push(name);
            }
            self.found.push(signed);
        }
        if self.found.len() > BULK_CERTIFICATES_MAX as usize {
            return Err(too_many_signed());
        }
        Ok(())
    }
}

/// The maximum number of rows per level: one past the limit, and the CA itself.
const ROWS_MAX: u32 = BULK_CERTIFICATES_MAX + 2;
