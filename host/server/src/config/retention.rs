//! How many versions of credentials are kept, and for how long.

use std::num::NonZeroU32;

use keywright_core::{
    permission::{PathMalformed, PermissionPath},
    retention::{Kept, RetentionLimits, RetentionPolicies, RetentionPolicy},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::number::Number;
use crate::started::StartRefused;

/// How many versions of credentials are kept, and for how long. Without a policy, all are kept for ever.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetentionConfig {
    /// How long after a run the next one begins, in seconds. Of several servers on one database, one does each
    /// run.
    pub(crate) interval_seconds: Number<1, 86_400, 3_600>,
    /// The policies. Of those whose paths cover a credential, the one with the longest path holds, and no other.
    policies: Vec<PolicyConfig>,
}

/// What is kept of the credentials on one path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PolicyConfig {
    /// A full name, or a path that ends in `/*`. Casing does not count.
    path: String,
    /// How many versions of each credential are kept at most, the current one included. Without it, their number has no
    /// limit.
    versions_max: Option<VersionsMax>,
    /// For how many days of 24 hours after it was made a version is kept at most. Without it, their age has no limit.
    age_days_max: Option<AgeDaysMax>,
    /// Whether all versions are kept, whatever the policy of an enclosing path says. Instead of both limits.
    #[serde(default)]
    keep_all: bool,
}

/// So many versions are counted each time that a credential is looked at.
type VersionsMax = Number<1, 10_000, 1>;

/// A hundred years.
type AgeDaysMax = Number<1, 36_500, 1>;

impl RetentionConfig {
    /// The policies, checked.
    pub(crate) fn policies(&self) -> Result<RetentionPolicies, StartRefused> {
        let policies = self.policies.iter().map(|policy| {
            policy.policy().map_err(|cause| {
                let doing = format!("reading retention.policies for {:?}", policy.path);
                StartRefused::while_doing(doing, cause)
            })
        });
        RetentionPolicies::new(policies.collect::<Result<_, _>>()?)
            .map_err(|cause| StartRefused::while_doing("reading retention.policies", cause))
    }
}

impl PolicyConfig {
    fn policy(&self) -> Result<RetentionPolicy, PolicyRefused> {
        let path = PermissionPath::parse(&self.path)?;
        let versions_max = self.versions_max.map(VersionsMax::count_u32);
        let age_days_max = self.age_days_max.map(AgeDaysMax::count_u32);
        let limits = RetentionLimits::new(
            versions_max.and_then(NonZeroU32::new),
            age_days_max.and_then(NonZeroU32::new),
        );
        let kept = match (limits, self.keep_all) {
            (None, true) => Kept::All,
            (Some(limits), false) => Kept::Within(limits),
            (None, false) => return Err(PolicyRefused::NothingSaid),
            (Some(_), true) => return Err(PolicyRefused::Contradictory),
        };
        Ok(RetentionPolicy { path, kept })
    }
}

/// Why a policy can't be used.
#[derive(Debug, thiserror::Error)]
enum PolicyRefused {
    #[error("keep_all keeps all versions, so there can be neither versions_max nor age_days_max")]
    Contradictory,
    #[error("it must have versions_max or age_days_max, or keep_all = true")]
    NothingSaid,
    #[error(transparent)]
    PathMalformed(#[from] PathMalformed),
}
