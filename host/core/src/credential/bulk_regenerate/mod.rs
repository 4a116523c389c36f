//! Regenerating everything that an authority signed, down to the leaves, or that a plugin made: all of it, or nothing.

mod levels;
mod order;
mod permits;
mod selection;
mod signers;
mod under_way;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use uuid::Uuid;

use crate::{
    Failure,
    authorization::{Caller, Permit},
    credential::{
        CredentialName, CredentialType, Credentials, PluginDigest, StoredVersion,
        service::MAKINGS_MAX, stored_certificate::StoredCertificate, version::is_authority,
    },
    ports::{Additions, AllAppended, AppendCondition, Generator, NewVersion},
};
use order::Order;
use permits::Permits;
use selection::Selected;
use signers::{Signer, SignerVersions, Signers};

pub use selection::BulkRegenerate;
pub use under_way::{BULK_REGENERATIONS_MAX, BulkRegenerations};

/// The most credentials that are regenerated together, and the most certificates that get a version with a step of their authority's rotation.
pub const BULK_CERTIFICATES_MAX: u32 = 10_000;

impl Credentials {
    /// Regenerates many credentials and returns their names, in alphabetical order without case.
    ///
    /// Each is made from the parameters of its newest version; a certificate is signed by the authority that this version
    /// names: by the new version of that authority where it is regenerated too. What is made is written in one transaction,
    /// which looks at all the versions once more that it was made from and signed by. Where one of them has changed, everything
    /// is decided anew, and only what is touched by the change is made anew.
    ///
    /// The caller must be permitted to write everything that is regenerated, and of what an authority signed, to read it and
    /// the authorities below it.
    ///
    /// # Errors
    /// [`Failure::NotAllRegenerated`] with the first that could not be regenerated; [`Failure::TooManySigned`] and
    /// [`Failure::TooManyGenerated`]; [`Failure::PluginInUse`]; [`Failure::Contended`] when others kept changing them;
    /// [`Failure::TooManyBulkRegenerations`]. Nothing was written then.
    pub async fn bulk_regenerate(
        &self,
        caller: &Caller,
        of: &BulkRegenerate,
    ) -> Result<Vec<CredentialName>, Failure> {
        let rules = self.authorization.rules_of(caller).await?;
        // By the names alone at first: who may not regenerate them neither takes a place nor has anything else read.
        self.permitted_names(caller, &rules, of).await?;
        let _under_way = self
            .bulk_regenerations
            .begin()
            .ok_or(Failure::TooManyBulkRegenerations)?;
        let mut made_before = HashMap::new();
        for _ in 0..MAKINGS_MAX {
            let Selected { bases, signed } = self.selected(&rules, of).await?;
            let names = bases.iter().map(|base| base.name.clone()).collect();
            let permits = Permits::ask(caller, &rules, &bases)?;
            let mut signers = Signers::new(self, &permits);
            let mut remade = Vec::new();
            for of_type in self.by_type(caller, bases, of.refused_plugin())? {
                remade.extend(
                    self.remake_all(of_type, &mut made_before, &permits, &mut signers)
                        .await?,
                );
            }
            let (made, versions): (Vec<_>, Vec<_>) =
                remade.into_iter().map(Remade::into_addition).unzip();
            let additions = Additions {
                versions,
                unchanged: signers.into_read_versions(),
                signed,
            };
            match self.repository.append_all(additions).await? {
                AllAppended::Written(written) => {
                    permits.written(&written);
                    return Ok(in_order(names));
                }
                AllAppended::Changed(versions) => {
                    let remade = made.into_iter().zip(versions);
                    made_before = remade
                        .map(|(made, version)| (made.base_id, Remade { made, version }))
                        .collect();
                }
            }
        }
        Err(Failure::Contended)
    }

    /// What [`Credentials::bulk_regenerate`] would regenerate at this moment. Nothing is made, nothing is written.
    ///
    /// # Errors
    /// When the caller may not regenerate all of it; [`Failure::TooManySigned`] and [`Failure::TooManyGenerated`].
    pub async fn to_be_bulk_regenerated(
        &self,
        caller: &Caller,
        of: &BulkRegenerate,
    ) -> Result<Vec<CredentialName>, Failure> {
        let rules = self.authorization.rules_of(caller).await?;
        self.permitted_names(caller, &rules, of).await.map(in_order)
    }

    /// What is to be made anew, type by type.
    fn by_type(
        &self,
        caller: &Caller,
        bases: Vec<StoredVersion>,
        refused: Option<&PluginDigest>,
    ) -> Result<Vec<OfOneType>, Failure> {
        // Certificates come first: they may sign what comes after.
        let mut by_type: BTreeMap<(bool, CredentialType), Vec<StoredVersion>> = BTreeMap::new();
        for base in bases {
            let credential_type = base.credential_type.clone();
            let place = (!credential_type.is_certificate(), credential_type);
            by_type.entry(place).or_default().push(base);
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

    /// Makes all of them anew, as many at a time as the generator can, each after the one that signs it.
    async fn remake_all(
        &self,
        of_type: OfOneType,
        made_before: &mut HashMap<Uuid, Remade>,
        permits: &Permits<'_>,
        signers: &mut Signers<'_>,
    ) -> Result<Vec<Remade>, Failure> {
        let OfOneType { generator, bases } = of_type;
        let mut order = Order::new(bases);
        let mut under_way = FuturesUnordered::new();
        let mut all = Vec::new();
        loop {
            while under_way.len() < generator.generations_at_once().max(1) {
                let Some(base) = order.next() else { break };
                let signer = signers
                    .of(&base)
                    .await
                    .map_err(|failure| not_regenerated(base.name.clone(), failure))?;
                let before = made_before.remove(&base.id);
                let permit = permits.to_write(&base.name)?;
                under_way.push(self.remake(permit, base, signer, before, generator.as_ref()));
            }
            let Some(remade) = under_way.next().await else {
                return Ok(all);
            };
            let remade = remade?;
            let name = remade.version.name.lookup();
            if let Some(certificate) = &remade.made.authority {
                signers.add(&remade.version, Arc::clone(certificate));
            }
            order.finish(&name);
            all.push(remade);
        }
    }

    /// Makes one anew, unless that was done before, from the same version and with the same signer.
    async fn remake(
        &self,
        permit: &Permit<'_>,
        base: StoredVersion,
        signer: Option<Arc<Signer>>,
        before: Option<Remade>,
        generator: &dyn Generator,
    ) -> Result<Remade, Failure> {
        let signed_by = signer.as_ref().map(|signer| signer.versions);
        if let Some(before) = before.filter(|before| before.made.signed_by == signed_by) {
            return Ok(before);
        }
        let (name, base_id) = (base.name.clone(), base.id);
        let (version, authority) = self
            .remake_version(permit, base, signer.as_deref(), generator)
            .await
            .map_err(|failure| not_regenerated(name, failure))?;
        let made = Made {
            base_id,
            signed_by,
            authority,
        };
        Ok(Remade { made, version })
    }

    async fn remake_version(
        &self,
        permit: &Permit<'_>,
        base: StoredVersion,
        signer: Option<&Signer>,
        generator: &dyn Generator,
    ) -> Result<(NewVersion, Option<Arc<StoredCertificate>>), Failure> {
        let base = self.open(permit, base).await?;
        let effective = self.effective_parameters_of(&base, generator).await?;
        let draft = self
            .make_draft_signed_by(
                &base.stored.name,
                &base.stored.credential_type,
                &effective.parameters,
                generator,
                signer.map(|signer| &signer.authority),
            )
            .await?;
        let version = self.seal(permit, &draft).await?;
        let authority = if is_authority(&version.credential_type, version.certificate.as_ref()) {
            Some(Arc::new(StoredCertificate::parse(&draft.content.value)?))
        } else {
            None
        };
        Ok((version, authority))
    }
}

/// What is to be made anew, and what makes it.
struct OfOneType {
    generator: Arc<dyn Generator>,
    /// The newest version of each credential.
    bases: Vec<StoredVersion>,
}

/// A credential that was made anew.
struct Remade {
    made: Made,
    version: NewVersion,
}

/// How a credential was made anew.
struct Made {
    /// The version whose parameters it has.
    base_id: Uuid,
    /// What signed it; nothing else did when it signed itself.
    signed_by: Option<SignerVersions>,
    /// What it signs with, when it is an authority.
    authority: Option<Arc<StoredCertificate>>,
}

impl Remade {
    fn into_addition(self) -> (Made, (NewVersion, AppendCondition)) {
        let condition = AppendCondition::NewestIs(Some(self.made.base_id));
        (self.made, (self.version, condition))
    }
}

fn in_order(mut names: Vec<CredentialName>) -> Vec<CredentialName> {
    names.sort_by_cached_key(|name| name.lookup().folded().to_owned());
    names
}

/// There are more than [`BULK_CERTIFICATES_MAX`].
pub(super) fn too_many_signed() -> Failure {
    Failure::TooManySigned {
        limit: "10,000 credentials",
    }
}

fn not_regenerated(name: CredentialName, reason: Failure) -> Failure {
    Failure::NotAllRegenerated {
        name,
        reason: Box::new(reason),
    }
}
