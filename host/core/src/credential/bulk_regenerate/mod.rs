//! Atomically regenerating all credentials below a CA, all credentials that a plugin generated, or all credentials that were
//! derived from a credential.

mod order;
mod select;
mod signers;
mod work;

use std::collections::{BTreeMap, HashMap, HashSet};

use uuid::Uuid;

use crate::{
    UseCaseError,
    authorization::Caller,
    credential::{
        CredentialName, CredentialType, PluginDigest, RegenerateCredentials, StoredVersion,
        child_versions::BulkSlots, version_store::WRITE_ATTEMPTS_MAX,
    },
    permission::Operation,
    ports::{AllAppended, ReadVersions},
};
use select::{Permits, Selection};
use work::{Failures, OfOneType, Regenerated, Work};

pub use select::{BulkCriterion, BulkRegenerate};
pub use work::NotRegenerated;

/// The options of a bulk regeneration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkOptions {
    /// Whether to only check the credentials, without generating or writing anything.
    pub is_dry_run: bool,
    /// Whether to regenerate the other credentials if some fail.
    pub keeps_going: bool,
}

/// The result of a bulk regeneration, in case-insensitive alphabetical order.
#[derive(Debug)]
pub struct BulkRegenerated {
    /// The regenerated credentials; in a dry run, the credentials that passed all checks.
    pub regenerated: Vec<CredentialName>,
    /// The credentials that failed; always empty without [`BulkOptions::keeps_going`].
    pub failed: Vec<NotRegenerated>,
}

/// Regenerates many credentials.
pub struct BulkRegenerateCredentials {
    pub(super) regenerate: RegenerateCredentials,
    pub(super) slots: BulkSlots,
}

impl BulkRegenerateCredentials {
    /// Regenerates many credentials.
    ///
    /// Each is generated from the parameters of its latest version. A certificate is signed by the CA that this version
    /// names, with the new version of the CA if that is regenerated, too. All credentials are checked before the first value
    /// is generated. A dry run ends after these checks, and fails like a real run that fails in them.
    ///
    /// One transaction writes all versions, after checking that their previous versions, the CA versions that signed them and the
    /// versions of their inputs are unchanged. If one has changed, the selection is repeated, and only the affected values are generated
    /// again. The last attempt does not check whether other credentials became part of the selection. With [`BulkOptions::keeps_going`],
    /// a credential fails in it if the credential has changed since the first attempt, or its CA or an input since it was read.
    ///
    /// The caller needs permission to write every selected credential; with [`BulkOptions::keeps_going`], credentials that it may
    /// not write fail. With [`BulkCriterion::SignedBy`], it also needs permission to read the CA and the selected CAs; and with
    /// [`BulkCriterion::DerivedFrom`], to read the input.
    ///
    /// # Errors
    /// [`UseCaseError::NotAllRegenerated`] with the first credential that failed, unless the options keep going;
    /// [`UseCaseError::TooManySigned`]; [`UseCaseError::TooManyGenerated`]; [`UseCaseError::TooManyDerived`];
    /// [`UseCaseError::BulkTooLarge`]; [`UseCaseError::PluginInUse`]; [`UseCaseError::Contended`] if concurrent
    /// changes continued; [`UseCaseError::TooManyBulkChanges`];
    /// [`UseCaseError::BulkChangeOfActor`]. Nothing is written then.
    pub async fn credentials(
        &self,
        caller: &Caller,
        of: &BulkRegenerate,
        options: BulkOptions,
    ) -> Result<BulkRegenerated, UseCaseError> {
        let (authorization, store) = (&self.regenerate.authorization, &self.regenerate.store);
        let permissions = authorization.permissions_of(caller).await?;
        let selection = Selection {
            repository: store.repository.as_ref(),
            actor: caller.actor(),
            permissions: &permissions,
            of,
            keeps_going: options.keeps_going,
        };
        // Authorizes by name first, so that an unauthorized caller occupies no slot and causes no further reads.
        let forbidden = selection.authorize_names(caller).await?;
        if !forbidden.is_empty() {
            return Ok(BulkRegenerated::forbidden(forbidden));
        }
        let mut slot = self.slots.of(caller.actor());
        slot.take()?;
        let (mut earlier, mut read) = (HashMap::new(), Vec::new());
        let mut first: HashSet<Uuid> = HashSet::new();
        for attempt in 1..=WRITE_ATTEMPTS_MAX {
            let (mut bases, mut signed) = selection.newest_versions().await?;
            let mut permits = Permits::request(caller, &permissions, &bases, options.keeps_going)?;
            let mut failures = Failures::new(options.keeps_going);
            if attempt == 1 {
                first.extend(bases.iter().map(|base| base.id));
            } else if attempt == WRITE_ATTEMPTS_MAX {
                // A caller that may write one of the credentials must not prevent the regeneration of the others.
                signed.clear();
                if options.keeps_going {
                    failures.add_changed(&mut bases, &first)?;
                    permits.refuse_changed(store, &read).await?;
                }
            }
            let by_type = self.by_type(&permits, bases, of.refused_plugin(), &mut failures)?;
            let mut work = Work::new(&self.regenerate, &permits, failures);
            let mut checked = Vec::new();
            for of_type in by_type {
                checked.push(work.check(of_type).await?);
            }
            let names = checked.iter().flat_map(OfOneType::names).collect();
            if options.is_dry_run {
                return Ok(BulkRegenerated::new(names, work.end().1));
            }
            let mut regenerated = Vec::new();
            for of_type in checked {
                regenerated.extend(work.regenerate(of_type, &mut earlier).await?);
            }
            let names: Vec<_> = regenerated.iter().map(Regenerated::name).collect();
            let (unchanged, failed) = work.end();
            let (details, additions) = Regenerated::into_additions(regenerated, unchanged, signed);
            self.confirm(caller, &names, &additions.unchanged).await?;
            read.extend_from_slice(&additions.unchanged);
            match store.repository.append_all(additions).await? {
                AllAppended::Written(written) => {
                    permits.written(&written);
                    return Ok(BulkRegenerated::new(names, failed));
                }
                AllAppended::Changed(versions) => earlier = Regenerated::by_base(details, versions),
            }
        }
        Err(UseCaseError::Contended)
    }

    /// Checks that the caller may still write these credentials, and read these CAs and inputs by the names in the parameters.
    /// Generating may have taken long. Other permissions don't matter, not even those that the selection required: other users may
    /// change the caller's permissions elsewhere at any time.
    async fn confirm(
        &self,
        caller: &Caller,
        written: &[CredentialName],
        read: &[ReadVersions],
    ) -> Result<(), UseCaseError> {
        let authorization = &self.regenerate.authorization;
        let current = authorization.permissions_of(caller).await?;
        let may_write = |name: &CredentialName| current.allow(Operation::Write, name.as_str());
        let may_read = |read: &ReadVersions| current.allow(Operation::Read, read.name.requested());
        if written.iter().all(may_write) && read.iter().all(may_read) {
            return Ok(());
        }
        Err(UseCaseError::Contended)
    }

    /// Groups the credentials by type. Credentials that the caller may not write, and credentials of types without a generator,
    /// fail.
    fn by_type(
        &self,
        permits: &Permits<'_>,
        bases: Vec<StoredVersion>,
        refused: Option<&PluginDigest>,
        failures: &mut Failures,
    ) -> Result<Vec<OfOneType<StoredVersion>>, UseCaseError> {
        // Certificates come first, because they may sign credentials of other types.
        let mut by_type: BTreeMap<(bool, CredentialType), Vec<StoredVersion>> = BTreeMap::new();
        for base in bases {
            if let Err(failure) = permits.to_write(&base.name) {
                failures.add(base.name, failure)?;
                continue;
            }
            let credential_type = base.credential_type.clone();
            let key = (!credential_type.is_certificate(), credential_type);
            by_type.entry(key).or_default().push(base);
        }
        let mut types = Vec::new();
        for ((_, credential_type), bases) in by_type {
            let known = &self.regenerate.generation.types;
            let Ok(generator) = known.generator(permits.caller, &credential_type) else {
                for base in bases {
                    failures.add(base.name, known.unknown())?;
                }
                continue;
            };
            if refused.is_some_and(|refused| refused.as_str() == generator.identity().digest) {
                return Err(UseCaseError::PluginInUse(credential_type));
            }
            let generator = generator.for_bulk_work();
            types.push(OfOneType { generator, bases });
        }
        Ok(types)
    }
}

impl BulkRegenerated {
    /// Returns the result if the caller may write none of the credentials.
    fn forbidden(names: Vec<CredentialName>) -> Self {
        let failed = names.into_iter().map(|name| NotRegenerated {
            name,
            reason: UseCaseError::WriteNotPermitted,
        });
        Self::new(Vec::new(), failed.collect())
    }

    fn new(mut regenerated: Vec<CredentialName>, mut failed: Vec<NotRegenerated>) -> Self {
        regenerated.sort_by_cached_key(CredentialName::folded);
        failed.sort_by_cached_key(|failed| failed.name.folded());
        Self {
            regenerated,
            failed,
        }
    }
}
