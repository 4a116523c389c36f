//! Checking and regenerating each credential of a bulk regeneration, after its signer: a stored CA, or a CA that was just
//! regenerated.

use std::{
    borrow::Borrow,
    collections::{HashMap, HashSet, VecDeque},
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::Poll,
};

use futures_util::{
    Stream, StreamExt,
    stream::{FuturesOrdered, FuturesUnordered},
};
use uuid::Uuid;

use super::{
    order::{Order, folded_signer},
    select::Permits,
    signers::{Signer, SignerVersions, Signers},
};
use crate::{
    Secret, UseCaseError,
    credential::{
        CredentialName, Parameters, RegenerateCredentials, StoredVersion,
        inputs::{Inputs, may_read_all, named_inputs},
        parameters::IS_CA,
        version_store::StoredCertificate,
    },
    permission::Actor,
    ports::{Additions, AppendCondition, Generator, NewVersion, ReadSigned, ReadVersions},
};

/// A credential that was not regenerated.
#[derive(Debug)]
pub struct NotRegenerated {
    /// The credential's name.
    pub name: CredentialName,
    /// The reason why it was not regenerated.
    pub reason: UseCaseError,
}

/// The credentials of one type, and their generator.
pub(super) struct OfOneType<T> {
    pub(super) generator: Arc<dyn Generator>,
    /// The latest version of each credential.
    pub(super) bases: Vec<T>,
}

/// A credential that passed all checks.
pub(super) struct Checked {
    base: StoredVersion,
    /// The parameters of its new version, as JSON text: thousands of parsed ones would need many times its memory.
    parameters: Secret,
    /// The actor that chose the inputs, if known.
    chosen_by: Option<Actor>,
    will_be_authority: bool,
}

pub(super) struct Regenerated {
    details: Details,
    version: NewVersion,
}

/// The inputs and the result of a regeneration.
pub(super) struct Details {
    /// The version whose parameters were used.
    base_id: Uuid,
    /// The CA versions that signed it; `None` if it is self-signed.
    signed_by: Option<SignerVersions>,
    /// The versions from which it was derived.
    inputs: Vec<ReadVersions>,
    /// Its value, if it is a CA.
    authority: Option<Arc<StoredCertificate>>,
}

pub(super) struct Failures {
    keeps_going: bool,
    all: Vec<NotRegenerated>,
    /// By folded name.
    names: HashMap<String, CredentialName>,
}

/// One attempt of a bulk regeneration.
pub(super) struct Work<'a> {
    regenerate: &'a RegenerateCredentials,
    permits: &'a Permits<'a>,
    signers: Signers<'a>,
    failures: Failures,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        regenerate: &'a RegenerateCredentials,
        permits: &'a Permits<'a>,
        failures: Failures,
    ) -> Self {
        Self {
            regenerate,
            permits,
            signers: Signers::new(regenerate, permits),
            failures,
        }
    }

    /// Checks all credentials of a type, and determines their parameters, without generating values.
    ///
    /// If several fail, the result does not depend on the duration of the calls, so that a dry run and a real run fail alike.
    pub(super) async fn check(
        &mut self,
        of_type: OfOneType<StoredVersion>,
    ) -> Result<OfOneType<Checked>, UseCaseError> {
        let OfOneType { generator, bases } = of_type;
        let (regenerate, permits) = (self.regenerate, self.permits);
        let start = |base: StoredVersion, _| {
            let (name, generator) = (base.name.clone(), generator.as_ref());
            async move { (name, regenerate.check_base(permits, base, generator).await) }
        };
        let finish = |signers: &mut Signers<'_>, checked: &Checked| {
            if checked.will_be_authority {
                signers.plan(checked.base.name.folded());
            }
        };
        let in_progress = FuturesOrdered::new();
        let checking = self.each(bases, generator.as_ref(), in_progress, start, finish);
        let bases = checking.await?;
        Ok(OfOneType { generator, bases })
    }

    /// Regenerates all credentials of a type, except values of an earlier attempt that are still valid.
    pub(super) async fn regenerate(
        &mut self,
        of_type: OfOneType<Checked>,
        earlier: &mut HashMap<Uuid, Regenerated>,
    ) -> Result<Vec<Regenerated>, UseCaseError> {
        self.signers.end_checks();
        let OfOneType { generator, bases } = of_type;
        let (regenerate, permits) = (self.regenerate, self.permits);
        let start = |checked: Checked, signer: Option<Arc<Signer>>| {
            let (name, generator) = (checked.base.name.clone(), generator.as_ref());
            let signed_by = signer.as_ref().map(|signer| signer.versions);
            let previous = earlier
                .remove(&checked.base.id)
                .filter(|previous| previous.details.signed_by == signed_by);
            async move {
                let regenerated = regenerate
                    .regenerate_checked(permits, checked, signer, generator, previous)
                    .await;
                (name, regenerated)
            }
        };
        let finish = |signers: &mut Signers<'_>, regenerated: &Regenerated| {
            if let Some(certificate) = &regenerated.details.authority {
                signers.add(&regenerated.version, Arc::clone(certificate));
            }
        };
        let in_progress = FuturesUnordered::new();
        self.each(bases, generator.as_ref(), in_progress, start, finish)
            .await
    }

    /// Returns the CA versions that must be unchanged when the new versions are written, and the credentials that failed.
    pub(super) fn end(self) -> (Vec<ReadVersions>, Vec<NotRegenerated>) {
        (self.signers.read, self.failures.all)
    }

    /// Starts work on each credential after the work on its signer has finished, on as many concurrently as the generator
    /// allows. Returns the results of the successful work.
    async fn each<T: Borrow<StoredVersion>, R, W>(
        &mut self,
        bases: Vec<T>,
        generator: &dyn Generator,
        mut in_progress: impl Stream<Item = (CredentialName, Result<R, UseCaseError>)>
        + Extend<W>
        + Unpin,
        mut start: impl FnMut(T, Option<Arc<Signer>>) -> W,
        finish: impl Fn(&mut Signers<'_>, &R),
    ) -> Result<Vec<R>, UseCaseError> {
        let mut order = Order::new(bases);
        let mut finished = VecDeque::new();
        let mut started = 0;
        let mut all = Vec::new();
        loop {
            while started < generator.generations_at_once().max(1) {
                let Some(base) = order.next() else { break };
                let name = base.borrow().name.clone();
                let signer = if let Some(failure) = self.failures.of_signer(base.borrow()) {
                    Err(failure)
                } else {
                    let signer = self.signers.of(base.borrow(), generator);
                    alongside(&mut in_progress, &mut finished, signer).await
                };
                match signer {
                    Ok(signer) => {
                        in_progress.extend([start(base, signer)]);
                        started += 1;
                    }
                    Err(failure) => {
                        order.finish(&name.lookup());
                        self.failures.add(name, failure)?;
                    }
                }
            }
            let next = match finished.pop_front() {
                None => in_progress.next().await,
                finished => finished,
            };
            let Some((name, outcome)) = next else {
                return Ok(all);
            };
            started -= 1;
            order.finish(&name.lookup());
            match outcome {
                Ok(result) => {
                    finish(&mut self.signers, &result);
                    all.push(result);
                }
                Err(failure) => self.failures.add(name, failure)?,
            }
        }
    }
}

impl RegenerateCredentials {
    /// Checks whether a credential can be regenerated, as far as possible without generating a value.
    async fn check_base(
        &self,
        permits: &Permits<'_>,
        base: StoredVersion,
        generator: &dyn Generator,
    ) -> Result<Checked, UseCaseError> {
        let permit = permits.to_write(&base.name)?;
        let version = self.store.open(permit, base.clone()).await?;
        let stored = version.content.parsed_parameters()?;
        let effective = self
            .effective_parameters(&version, stored.as_ref(), generator)
            .await?;
        let parameters = effective.parameters;
        let chosen_by = version.content.chosen_by;
        let reading = self.inputs(permits, &base, &parameters, chosen_by.as_ref(), generator);
        let inputs = reading.await?;
        generator.check_generate(&parameters, &inputs.passed)?;
        Ok(Checked {
            will_be_authority: base.credential_type.is_certificate() && parameters.is_true(IS_CA),
            parameters: Secret::new(parameters.to_json()),
            chosen_by,
            base,
        })
    }

    /// Reads the inputs that the parameters of a credential name.
    ///
    /// The caller's permission alone is not enough: another actor that may read the derived value could have lost the permission to
    /// read the inputs.
    ///
    /// # Errors
    /// [`UseCaseError::NotRegeneratable`] if the actor that chose the inputs may no longer read all of them.
    async fn inputs(
        &self,
        permits: &Permits<'_>,
        base: &StoredVersion,
        parameters: &Parameters,
        chosen_by: Option<&Actor>,
        generator: &dyn Generator,
    ) -> Result<Inputs, UseCaseError> {
        let named = named_inputs(&base.name.lookup(), parameters, generator)?;
        let permitted = permits.to_derive_from(named)?;
        let active = self.store.active_inputs(&permitted).await?;
        if let Some(actor) = chosen_by.filter(|actor| *actor != permits.caller.actor())
            && !may_read_all(&self.authorization, actor, &active).await?
        {
            return Err(UseCaseError::NotRegeneratable(INPUTS_FORBIDDEN.to_owned()));
        }
        self.store.open_inputs(active, chosen_by).await
    }

    /// Regenerates a credential, or returns the result of the previous attempt if its inputs are unchanged.
    async fn regenerate_checked(
        &self,
        permits: &Permits<'_>,
        checked: Checked,
        signer: Option<Arc<Signer>>,
        generator: &dyn Generator,
        previous: Option<Regenerated>,
    ) -> Result<Regenerated, UseCaseError> {
        if let Some(previous) = previous
            && self.store.are_unchanged(&previous.details.inputs).await?
        {
            return Ok(previous);
        }
        let base = checked.base;
        let parameters = Parameters::parse(checked.parameters.expose())?;
        let authority = signer.as_ref().map(|signer| &signer.authority);
        let of @ (name, credential_type) = (&base.name, &base.credential_type);
        let chosen_by = checked.chosen_by.as_ref();
        let reading = self.inputs(permits, &base, &parameters, chosen_by, generator);
        let inputs = reading.await?;
        let read = inputs.read.clone();
        let generating = self
            .generation
            .draft(of, &parameters, generator, authority, inputs);
        let draft = generating.await?;
        let version = self.store.seal(permits.to_write(name)?, &draft).await?;
        let facts = draft.attributes.certificate.as_ref();
        let is_authority = credential_type.is_certificate()
            && facts.is_some_and(|facts| facts.is_certificate_authority);
        let authority = if is_authority {
            Some(Arc::new(StoredCertificate::parse(&draft.content.value)?))
        } else {
            None
        };
        let details = Details {
            base_id: base.id,
            inputs: read,
            signed_by: signer.map(|signer| signer.versions),
            authority,
        };
        Ok(Regenerated { details, version })
    }
}

/// The error contains neither the actor nor the input, because the caller need not be allowed to read permissions.
const INPUTS_FORBIDDEN: &str = "the actor that chose its parameters may no longer read all of its inputs; check who may read \
    the credential, then delete it, or regenerate it by its name";

impl OfOneType<Checked> {
    pub(super) fn names(&self) -> impl Iterator<Item = CredentialName> {
        self.bases.iter().map(|checked| checked.base.name.clone())
    }
}

impl Borrow<StoredVersion> for Checked {
    fn borrow(&self) -> &StoredVersion {
        &self.base
    }
}

impl Regenerated {
    pub(super) fn name(&self) -> CredentialName {
        self.version.name.clone()
    }

    /// Returns the versions to write, on the condition that `unchanged`, `signed` and the inputs of the versions have not changed.
    pub(super) fn into_additions(
        all: Vec<Self>,
        mut unchanged: Vec<ReadVersions>,
        signed: Vec<ReadSigned>,
    ) -> (Vec<Details>, Additions) {
        let (details, versions): (Vec<_>, Vec<_>) =
            all.into_iter().map(Self::into_addition).unzip();
        unchanged.extend(Self::inputs(&details));
        let additions = Additions {
            versions,
            unchanged,
            signed,
        };
        (details, additions)
    }

    fn into_addition(self) -> (Details, (NewVersion, AppendCondition)) {
        let condition = AppendCondition::NewestIs(Some(self.details.base_id));
        (self.details, (self.version, condition))
    }

    /// Returns the versions from which values were derived, each once.
    fn inputs(details: &[Details]) -> Vec<ReadVersions> {
        let inputs = details.iter().flat_map(|details| &details.inputs);
        let each: HashMap<_, _> = inputs
            .map(|read| ((read.name.folded(), &read.versions), read))
            .collect();
        each.into_values().cloned().collect()
    }

    /// Returns versions that were not written, by the ids of their previous versions.
    pub(super) fn by_base(details: Vec<Details>, versions: Vec<NewVersion>) -> HashMap<Uuid, Self> {
        details
            .into_iter()
            .zip(versions)
            .map(|(details, version)| (details.base_id, Self { details, version }))
            .collect()
    }
}

impl Failures {
    pub(super) fn new(keeps_going: bool) -> Self {
        Self {
            keeps_going,
            all: Vec::new(),
            names: HashMap::new(),
        }
    }

    /// Adds a credential.
    ///
    /// # Errors
    /// [`UseCaseError::NotAllRegenerated`] if the first failure ends the bulk regeneration. A failure of the database always does.
    pub(super) fn add(
        &mut self,
        name: CredentialName,
        reason: UseCaseError,
    ) -> Result<(), UseCaseError> {
        if !self.keeps_going || matches!(reason, UseCaseError::Repository(_)) {
            let reason = Box::new(reason);
            return Err(UseCaseError::NotAllRegenerated { name, reason });
        }
        self.names.insert(name.folded(), name.clone());
        self.all.push(NotRegenerated { name, reason });
        Ok(())
    }

    /// Adds the credentials whose version is not in `earlier`, and removes them from `bases`.
    pub(super) fn add_changed(
        &mut self,
        bases: &mut Vec<StoredVersion>,
        earlier: &HashSet<Uuid>,
    ) -> Result<(), UseCaseError> {
        for base in bases.extract_if(.., |base| !earlier.contains(&base.id)) {
            self.add(base.name, UseCaseError::Contended)?;
        }
        Ok(())
    }

    /// Returns the failure of a credential whose signer failed.
    fn of_signer(&self, base: &StoredVersion) -> Option<UseCaseError> {
        let signer = self.names.get(&folded_signer(base)?)?;
        Some(UseCaseError::IssuerNotRegenerated(signer.clone()))
    }
}

/// Awaits a future while the work in progress continues, because this work may hold a lock that the future waits for. Adds the
/// results of the work to `finished`.
async fn alongside<S: Stream + Unpin, F: Future>(
    in_progress: &mut S,
    finished: &mut VecDeque<S::Item>,
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
}
