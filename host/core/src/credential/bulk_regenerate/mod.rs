//! Atomically regenerating all credentials below a CA, or all credentials that a plugin generated.

mod issuers;
mod order;
mod select;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Caller, Permit},
    credential::{
        CredentialName, CredentialType, Credentials, PluginDigest, StoredVersion,
        content::StoredCertificate, version::is_authority, version_store::WRITE_ATTEMPTS_MAX,
    },
    ports::{Additions, AllAppended, AppendCondition, Generator, NewVersion},
};
use issuers::{Signer, SignerVersions, Signers};
use order::Order;
use select::{Permits, Selected};

pub(super) use select::too_many_signed;
pub use select::{BULK_CERTIFICATES_MAX, BulkRegenerate};

impl Credentials {
    /// Regenerates many credentials and returns their names, in case-insensitive alphabetical order.
    ///
    /// Each is generated from the parameters of its newest version. A certificate is signed by the CA that this version
    /// names, with the new version of the CA if that is regenerated, too. One transaction writes all versions, after
    /// checking that their previous versions and the CA versions that signed them are unchanged. If one has changed, the
    /// selection is repeated, and only the affected values are generated again.
    ///
    /// The caller needs permission to write every regenerated credential and, with [`BulkRegenerate::SignedBy`], to read the
    /// CA and the CAs below it.
    ///
    /// # Errors
    /// [`Failure::NotAllRegenerated`] with the first credential that failed; [`Failure::TooManySigned`];
    /// [`Failure::TooManyGenerated`]; [`Failure::PluginInUse`]; [`Failure::Contended`] if concurrent changes continued;
    /// [`Failure::TooManyBulkRegenerations`]. Nothing is written then.
    pub async fn bulk_regenerate(
        &self,
        caller: &Caller,
        of: &BulkRegenerate,
    ) -> Result<Vec<CredentialName>, Failure> {
        let permissions = self.authorization.permissions_of(caller).await?;
        // Authorizes by name first, so that an unauthorized caller occupies no slot and causes no further reads.
        self.permitted_names(caller, &permissions, of).await?;
        let _in_progress = self
            .bulk_regenerations
            .begin()
            .ok_or(Failure::TooManyBulkRegenerations)?;
        let mut earlier = HashMap::new();
        for _ in 0..WRITE_ATTEMPTS_MAX {
            let Selected { bases, signed } = self.selected(&permissions, of).await?;
            let names = bases.iter().map(|base| base.name.clone()).collect();
            let permits = Permits::request(caller, &permissions, &bases)?;
            let mut signers = Signers::new(&self.store, &permits);
            let mut regenerated = Vec::new();
            for of_type in self.by_type(caller, bases, of.refused_plugin())? {
                regenerated.extend(
                    self.regenerate_all(of_type, &mut earlier, &permits, &mut signers)
                        .await?,
                );
            }
            let (details, versions): (Vec<_>, Vec<_>) = regenerated
                .into_iter()
                .map(Regenerated::into_addition)
                .unzip();
            let additions = Additions {
                versions,
                unchanged: signers.into_read_versions(),
                signed,
            };
            match self.store.repository.append_all(additions).await? {
                AllAppended::Written(written) => {
                    permits.written(&written);
                    return Ok(in_order(names));
                }
                AllAppended::Changed(versions) => {
                    let regenerated = details.into_iter().zip(versions);
                    earlier = regenerated
                        .map(|(details, version)| {
                            (details.base_id, Regenerated { details, version })
                        })
                        .collect();
                }
            }
        }
        Err(Failure::Contended)
    }

    /// Returns the names of the credentials that [`Credentials::bulk_regenerate`] would regenerate, without generating or
    /// writing anything.
    ///
    /// # Errors
    /// If the caller may not regenerate all of them; [`Failure::TooManySigned`]; [`Failure::TooManyGenerated`].
    pub async fn to_be_bulk_regenerated(
        &self,
        caller: &Caller,
        of: &BulkRegenerate,
    ) -> Result<Vec<CredentialName>, Failure> {
        let permissions = self.authorization.permissions_of(caller).await?;
        self.permitted_names(caller, &permissions, of)
            .await
            .map(in_order)
    }

    /// Groups the credentials by type.
    fn by_type(
        &self,
        caller: &Caller,
        bases: Vec<StoredVersion>,
        refused: Option<&PluginDigest>,
    ) -> Result<Vec<OfOneType>, Failure> {
        // Certificates come first, because they may sign credentials of other types.
        let mut by_type: BTreeMap<(bool, CredentialType), Vec<StoredVersion>> = BTreeMap::new();
        for base in bases {
            let credential_type = base.credential_type.clone();
            let key = (!credential_type.is_certificate(), credential_type);
            by_type.entry(key).or_default().push(base);
        }
        let types = by_type.into_iter().map(|((_, credential_type), bases)| {
            let generator =
                self.generator(caller, &credential_type)
                    .map_err(|failure| match bases.first() {
                        Some(base) => not_regenerated(base.name.clone(), failure),
                        None => failure,
                    })?;
            if refused.is_some_and(|refused| refused.as_str() == generator.identity().digest) {
                return Err(Failure::PluginInUse(credential_type));
            }
            let generator = generator.in_turn();
            Ok(OfOneType { generator, bases })
        });
        types.collect()
    }

    /// Regenerates all credentials of a type, as many concurrently as the generator allows, each after its signer.
    async fn regenerate_all(
        &self,
        of_type: OfOneType,
        earlier: &mut HashMap<Uuid, Regenerated>,
        permits: &Permits<'_>,
        signers: &mut Signers<'_>,
    ) -> Result<Vec<Regenerated>, Failure> {
        let OfOneType { generator, bases } = of_type;
        let mut order = Order::new(bases);
        let mut in_progress = FuturesUnordered::new();
        let mut finished = VecDeque::new();
        let mut all = Vec::new();
        loop {
            while in_progress.len() < generator.generations_at_once().max(1) {
                let Some(base) = order.next() else { break };
                let signer = alongside(&mut in_progress, &mut finished, signers.of(&base))
                    .await
                    .map_err(|failure| not_regenerated(base.name.clone(), failure))?;
                let previous = earlier.remove(&base.id);
                let permit = permits.to_write(&base.name)?;
                in_progress.push(self.regenerate_one(
                    permit,
                    base,
                    signer,
                    previous,
                    generator.as_ref(),
                ));
            }
            let regenerated = match finished.pop_front() {
                None => in_progress.next().await,
                finished => finished,
            };
            let Some(regenerated) = regenerated.transpose()? else {
                return Ok(all);
            };
            let name = regenerated.version.name.lookup();
            if let Some(certificate) = &regenerated.details.authority {
                signers.add(&regenerated.version, Arc::clone(certificate));
            }
            order.finish(&name);
            all.push(regenerated);
        }
    }

    /// Regenerates a credential, unless an earlier attempt did so from the same version and with the same signer.
    async fn regenerate_one(
        &self,
        permit: &Permit<'_>,
        base: StoredVersion,
        signer: Option<Arc<Signer>>,
        previous: Option<Regenerated>,
        generator: &dyn Generator,
    ) -> Result<Regenerated, Failure> {
        let signed_by = signer.as_ref().map(|signer| signer.versions);
        if let Some(previous) = previous.filter(|previous| previous.details.signed_by == signed_by)
        {
            return Ok(previous);
        }
        let (name, base_id) = (base.name.clone(), base.id);
        let (version, authority) = self
            .generate_version(permit, base, signer.as_deref(), generator)
            .await
            .map_err(|failure| not_regenerated(name, failure))?;
        let details = Details {
            base_id,
            signed_by,
            authority,
        };
        Ok(Regenerated { details, version })
    }

    async fn generate_version(
        &self,
        permit: &Permit<'_>,
        base: StoredVersion,
        signer: Option<&Signer>,
        generator: &dyn Generator,
    ) -> Result<(NewVersion, Option<Arc<StoredCertificate>>), Failure> {
        let base = self.store.open(permit, base).await?;
        let effective = self.effective_parameters_of(&base, generator).await?;
        let draft = self
            .generate_draft(
                &base.stored.name,
                &base.stored.credential_type,
                &effective.parameters,
                generator,
                signer.map(|signer| &signer.authority),
            )
            .await?;
        let version = self.store.seal(permit, &draft).await?;
        let authority = if is_authority(&version.credential_type, version.certificate.as_ref()) {
            Some(Arc::new(StoredCertificate::parse(&draft.content.value)?))
        } else {
            None
        };
        Ok((version, authority))
    }
}

/// The credentials of one type to regenerate, and their generator.
struct OfOneType {
    generator: Arc<dyn Generator>,
    /// The newest version of each credential.
    bases: Vec<StoredVersion>,
}

/// A regenerated credential.
struct Regenerated {
    details: Details,
    version: NewVersion,
}

/// The inputs and the result of a regeneration.
struct Details {
    /// The version whose parameters were used.
    base_id: Uuid,
    /// The CA versions that signed it; `None` if it is self-signed.
    signed_by: Option<SignerVersions>,
    /// Its value, if it is a CA.
    authority: Option<Arc<StoredCertificate>>,
}

impl Regenerated {
    fn into_addition(self) -> (Details, (NewVersion, AppendCondition)) {
        let condition = AppendCondition::NewestIs(Some(self.details.base_id));
        (self.details, (self.version, condition))
    }
}

/// Awaits a future while the work in progress continues, because this work may hold a lock that the future waits for. Adds the
/// results of the work to `finished`.
async fn alongside<W: Future, F: Future>(
    in_progress: &mut FuturesUnordered<W>,
    finished: &mut VecDeque<W::Output>,
    future: F,
) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        while let Poll::Ready(Some(output)) = in_progress.poll_next_unpin(context) {
            finished.push_back(output);
        }
        future.as_mut().poll(context)
    })
    .await
}

fn in_order(mut names: Vec<CredentialName>) -> Vec<CredentialName> {
    names.sort_by_cached_key(|name| name.lookup().folded().to_owned());
    names
}

fn not_regenerated(name: CredentialName, reason: Failure) -> Failure {
    Failure::NotAllRegenerated {
        name,
        reason: Box::new(reason),
    }
}

/// The maximum number of concurrent bulk regenerations. Each keeps all new versions in memory until it writes them.
pub const BULK_REGENERATIONS_MAX: usize = 2;

/// The bulk regenerations in progress.
#[derive(Clone, Debug, Default)]
pub struct BulkRegenerations(Arc<AtomicUsize>);

/// A bulk regeneration in progress, until it is dropped.
pub(super) struct InProgress(Arc<AtomicUsize>);

impl BulkRegenerations {
    /// Starts a bulk regeneration, unless the maximum number is in progress.
    pub(super) fn begin(&self) -> Option<InProgress> {
        let one_more = |count| (count < BULK_REGENERATIONS_MAX).then_some(count + 1);
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more)
            .ok()
            .map(|_| InProgress(Arc::clone(&self.0)))
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn work_in_progress_continues_while_a_signer_is_looked_up() {
        let lock = Mutex::new(());
        let mut work = pin!(async {
            let _held = lock.lock().await;
            tokio::task::yield_now().await;
        });
        let mut in_progress = FuturesUnordered::from_iter([work.as_mut()]);
        assert!(poll_once(in_progress.next()).await.is_pending());
        let mut finished = VecDeque::new();
        let mut looking_up = pin!(alongside(&mut in_progress, &mut finished, lock.lock()));
        // The first poll may find the lock held, the second finds it released.
        let _ = poll_once(&mut looking_up).await;
        tokio::task::yield_now().await;
        assert!(poll_once(&mut looking_up).await.is_ready());
    }

    async fn poll_once<F: Future + Unpin>(mut future: F) -> Poll<F::Output> {
        poll_fn(|context| Poll::Ready(pin!(&mut future).poll(context))).await
    }

    #[test]
    fn a_finished_bulk_regeneration_allows_another_one() {
        let regenerations = BulkRegenerations::default();
        let mut in_progress: Vec<_> = (0..BULK_REGENERATIONS_MAX)
            .map(|_| regenerations.begin().unwrap())
            .collect();
        assert!(regenerations.clone().begin().is_none());
        in_progress.pop();
        let last = regenerations.begin();
        assert!(last.is_some());
        assert!(regenerations.begin().is_none());
    }
}
