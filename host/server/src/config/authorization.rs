use keywright_core::permission::{Actor, Grant, Operation, Operations};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    findings::Findings,
    source::Section,
    values::{actor_forms, configured_path},
};
use crate::started::{StartupContext, StartupError};

/// Permissions granted by the configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AuthorizationConfig {
    /// Whether permissions are enforced. If not, every authenticated caller may do everything.
    pub(crate) enforced: bool,
    /// Permissions granted at every start-up. They are added to the stored permissions; none are ever revoked.
    permissions: Vec<GrantedConfig>,
}

/// Operations granted to several actors on one path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrantedConfig {
    /// The name of a credential, or a path that ends in `/*`, which covers everything below it.
    path: String,
    /// The actors: `uaa-client:<client id>`, `uaa-user:<user id>` or `mtls-app:<application id>`.
    actors: Vec<String>,
    /// The operations granted: `read`, `write`, `delete`, `read_acl`, `write_acl`.
    operations: Vec<String>,
}

impl Default for AuthorizationConfig {
    fn default() -> Self {
        Self {
            enforced: true,
            permissions: Vec::new(),
        }
    }
}

impl Section for AuthorizationConfig {}

impl AuthorizationConfig {
    /// Checks the section.
    pub(crate) fn check(&self, findings: &mut Findings) {
        if !self.enforced {
            findings.warning(
                "authorization.enforced",
                "permissions are not enforced: every authenticated caller may do everything",
            );
        }
        for (index, grants) in self.grants_of_each().enumerate() {
            let setting = setting(index);
            for grant in findings
                .ok_or_report(&setting, grants)
                .into_iter()
                .flatten()
            {
                if !grant.actor.can_log_in() {
                    let actor = grant.actor.as_str();
                    let what = format!(
                        "no caller can log in as {actor:?}, which has permissions on {}; actors of callers are {}",
                        grant.path,
                        actor_forms()
                    );
                    findings.warning(format!("{setting}.actors"), what);
                }
            }
        }
    }

    /// Validates and returns the permissions, one per actor.
    pub(crate) fn grants(&self) -> Result<Vec<Grant>, StartupError> {
        let grants = self.grants_of_each().collect::<Result<Vec<_>, _>>()?;
        Ok(grants.into_iter().flatten().collect())
    }

    /// Like [`Self::grants`], for each configured permission separately.
    fn grants_of_each(&self) -> impl Iterator<Item = Result<Vec<Grant>, StartupError>> {
        let numbered = self.permissions.iter().enumerate();
        numbered.map(|(index, granted)| granted.grants(&setting(index)))
    }
}

impl GrantedConfig {
    /// Returns the permissions of this setting, one per actor.
    fn grants(&self, setting: &str) -> Result<Vec<Grant>, StartupError> {
        let path = configured_path(&self.path).while_doing(format!("{setting}.path"))?;
        let operations = self.operations.iter();
        let operations: Result<Vec<_>, _> = operations
            .map(|operation| Operation::parse(operation))
            .collect();
        let operations = operations.while_doing(format!("{setting}.operations"))?;
        let operations = Operations::of(operations).ok_or_else(|| {
            StartupError::new(format!(
                "{setting}.operations: must name at least one operation"
            ))
        })?;
        if self.actors.is_empty() {
            let what = format!("{setting}.actors: must name at least one actor");
            return Err(StartupError::new(what));
        }
        let grants = self.actors.iter().map(|actor| {
            Ok(Grant {
                path: path.clone(),
                actor: Actor::parse(actor).while_doing(format!("{setting}.actors"))?,
                operations,
            })
        });
        grants.collect()
    }
}

fn setting(index: usize) -> String {
    format!("authorization.permissions[{index}]")
}
