//! Walking from an authority down to the leaves: level by level, each credential once.

use std::collections::HashSet;

use super::too_many_signed;
use crate::{
    Failure,
    credential::{BULK_CERTIFICATES_MAX, Credentials, LookupName, StoredVersion},
    ports::{ReadSigned, SignedName, SignedTypes},
};

impl Credentials {
    /// The newest version of each credential below an authority, one query a level, each credential once; and what the
    /// queries answered.
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

    /// As [`Credentials::all_signed_by`], the names alone.
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

/// What a level consists of.
pub(super) trait Signed {
    fn name(&self) -> LookupName;

    /// Whether there may be a level below it.
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

/// What was found on the levels so far.
struct Levels<T> {
    /// Folded names, the first authority's included.
    seen: HashSet<String>,
    found: Vec<T>,
    /// The authorities of the last level.
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

    /// Those that signed the next level; none when there is no other.
    fn next_signers(&mut self) -> Option<Vec<LookupName>> {
        Some(std::mem::take(&mut self.signers)).filter(|signers| !signers.is_empty())
    }

    /// Adds what was found below the last signers, but for what was found before.
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

/// The most rows of a level: one past the limit, and the authority itself.
const ROWS_MAX: u32 = BULK_CERTIFICATES_MAX + 2;
