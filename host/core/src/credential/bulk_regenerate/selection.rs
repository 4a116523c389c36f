//! Which credentials a bulk regeneration is of.

use super::{levels::Signed, permits::Permits};
use crate::{
    Failure,
    authorization::{Caller, Rules},
    credential::{
        BULK_CERTIFICATES_MAX, CredentialName, Credentials, FindNames, GeneratedCredential,
        LookupName, PluginDigest, StoredVersion,
    },
    permission::Operation,
    ports::ReadSigned,
};

/// Which credentials a bulk regeneration is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkRegenerate {
    /// Every certificate of which any version was signed by this authority, every credential of another type whose newest
    /// version was, and everything below those that are authorities themselves; not the authority itself.
    SignedBy(LookupName),
    /// Every credential of these names that the caller may read, and whose newest version the plugin with this digest made.
    GeneratedBy {
        /// The plugin.
        digest: PluginDigest,
        /// What their names have in common.
        names: FindNames,
    },
}

/// What is to be regenerated.
pub(super) struct Selected {
    /// The newest version of each.
    pub(super) bases: Vec<StoredVersion>,
    /// What the queries answered that must be the same when what is made is written.
    pub(super) signed: Vec<ReadSigned>,
}

impl Credentials {
    /// The names of what is to be regenerated, once it is sure that the caller may regenerate all of it.
    pub(super) async fn permitted_names(
        &self,
        caller: &Caller,
        rules: &Rules,
        of: &BulkRegenerate,
    ) -> Result<Vec<CredentialName>, Failure> {
        match of {
            BulkRegenerate::SignedBy(authority) => {
                rules.permit(caller, Operation::Read, authority)?;
                if let Some(stored) = self.repository.stored_name(authority).await? {
                    rules.permit(caller, Operation::Read, &stored.lookup())?;
                }
                let signed = self.names_signed_by(authority).await?;
                Permits::ask(caller, rules, &signed)?;
                Ok(signed.into_iter().map(|signed| signed.name).collect())
            }
            BulkRegenerate::GeneratedBy { digest, names } => {
                let generated = self.newest_generated_by(rules, digest, names).await?;
                Permits::ask(caller, rules, &generated)?;
                let names = generated.into_iter().map(|one| one.found.name);
                Ok(names.collect())
            }
        }
    }

    /// What is to be regenerated, as it is stored.
    pub(super) async fn selected(
        &self,
        rules: &Rules,
        of: &BulkRegenerate,
    ) -> Result<Selected, Failure> {
        match of {
            BulkRegenerate::SignedBy(authority) => {
                let (bases, signed) = self.all_signed_by(authority).await?;
                Ok(Selected { bases, signed })
            }
            BulkRegenerate::GeneratedBy { digest, names } => {
                let generated = self.newest_generated_by(rules, digest, names).await?;
                let names: Vec<LookupName> = generated.iter().map(Signed::name).collect();
                let mut bases = self.repository.newest_by_names(&names).await?;
                // Others may have made them anew since they were found.
                bases.retain(|base| is_made_by(base, digest));
                Ok(Selected {
                    bases,
                    signed: Vec::new(),
                })
            }
        }
    }

    async fn newest_generated_by(
        &self,
        rules: &Rules,
        digest: &PluginDigest,
        names: &FindNames,
    ) -> Result<Vec<GeneratedCredential>, Failure> {
        let mut generated = self.readable_generated_by(rules, digest, names).await?;
        generated.retain(|one| one.is_newest);
        if generated.len() > BULK_CERTIFICATES_MAX as usize {
            return Err(Failure::TooManyGenerated {
                limit: "10,000 credentials",
            });
        }
        Ok(generated)
    }
}

impl BulkRegenerate {
    /// The plugin that is not to make them again.
    pub(super) fn refused_plugin(&self) -> Option<&PluginDigest> {
        match self {
            Self::SignedBy(_) => None,
            Self::GeneratedBy { digest, .. } => Some(digest),
        }
    }
}

impl Signed for GeneratedCredential {
    fn name(&self) -> LookupName {
        self.found.name.lookup()
    }

    /// The caller may read it, be it an authority or not.
    fn is_authority(&self) -> bool {
        false
    }
}

fn is_made_by(version: &StoredVersion, digest: &PluginDigest) -> bool {
    let plugin = version.provenance.as_ref();
    plugin.is_some_and(|plugin| plugin.digest == digest.as_str())
}
