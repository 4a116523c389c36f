//! The number of versions to keep of each credential, and the maximum age of versions.

use std::num::NonZeroU32;

use keywright_core::retention::{Kept, RetentionLimits, RetentionPolicies, RetentionPolicy};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    source::Section,
    values::{Number, configured_path},
};
use crate::started::{StartupContext, StartupError};

/// Limits on the number and age of each credential's versions. Without a policy, no version is deleted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetentionConfig {
    /// Time between two runs. If several servers share a database, one of them executes each run.
    pub(crate) interval_seconds: Number<1, 86_400, 3_600>,
    /// The policies. Only the policy with the longest path that covers a credential applies to it.
    policies: Vec<PolicyConfig>,
}

/// The retention policy of one path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PolicyConfig {
    /// A full name, or a path that ends in `/*`. Not case-sensitive.
    path: String,
    /// Maximum number of versions of each credential, including the active version. Unlimited by default.
    versions_max: Option<VersionsMax>,
    /// Maximum age of a version, in days of 24 hours since it was created. Unlimited by default.
    age_days_max: Option<AgeDaysMax>,
    /// Whether to keep all versions, overriding the policies of enclosing paths. Can't be combined with either limit.
    #[serde(default)]
    keep_all: bool,
}

/// Bounded because the versions are counted on every check of a credential.
type VersionsMax = Number<1, 10_000, 1>;

/// A hundred years.
type AgeDaysMax = Number<1, 36_500, 1>;

impl Section for RetentionConfig {}

impl RetentionConfig {
    /// Validates and returns the policies.
    pub(crate) fn policies(&self) -> Result<RetentionPolicies, StartupError> {
        let numbered = self.policies.iter().enumerate();
        let policies =
            numbered.map(|(index, policy)| policy.policy(&format!("retention.policies[{index}]")));
        RetentionPolicies::new(policies.collect::<Result<_, _>>()?)
            .while_doing("retention.policies")
    }
}

impl PolicyConfig {
    fn policy(&self, setting: &str) -> Result<RetentionPolicy, StartupError> {
        let path = configured_path(&self.path).while_doing(format!("{setting}.path"))?;
        let versions_max = self.versions_max.map(VersionsMax::count_u32);
        let age_days_max = self.age_days_max.map(AgeDaysMax::count_u32);
        let limits = RetentionLimits::new(
            versions_max.and_then(NonZeroU32::new),
            age_days_max.and_then(NonZeroU32::new),
        );
        let refused = |rule: &str| Err(StartupError::new(format!("{setting}: {rule}")));
        let kept = match (limits, self.keep_all) {
            (None, true) => Kept::All,
            (Some(limits), false) => Kept::Within(limits),
            (None, false) => {
                return refused("versions_max, age_days_max or keep_all = true is required");
            }
            (Some(_), true) => {
                return refused("keep_all can't be combined with versions_max or age_days_max");
            }
        };
        Ok(RetentionPolicy { path, kept })
    }
}
