use keywright_core::permission::{
    Actor, ActorError, Grant, Operation, Operations, UnknownOperationError,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    findings::Findings,
    source::Section,
    values::{ConfiguredPathError, actor_forms, configured_path},
};
use crate::started::StartupError;

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
            let setting = format!("authorization.permissions[{index}]");
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
        self.permissions.iter().enumerate().map(|(index, granted)| {
            granted.grants().map_err(|refused| {
                let setting = format!("authorization.permissions[{index}].{}", refused.field());
                StartupError::while_doing(setting, refused)
            })
        })
    }
}

impl GrantedConfig {
    fn grants(&self) -> Result<Vec<Grant>, GrantError> {
        let path = configured_path(&self.path)?;
        let operations = self
            .operations
            .iter()
            .map(|operation| Operation::parse(operation))
            .collect::<Result<Vec<_>, _>>()?;
        let operations = Operations::of(operations).ok_or(GrantError::NoOperation)?;
        if self.actors.is_empty() {
            return Err(GrantError::NoActor);
        }
        self.actors
            .iter()
            .map(|actor| {
                Ok(Grant {
                    path: path.clone(),
                    actor: Actor::parse(actor)?,
                    operations,
                })
            })
            .collect()
    }
}

/// Configured permissions are invalid.
#[derive(Debug, thiserror::Error)]
enum GrantError {
    #[error(transparent)]
    ActorMalformed(#[from] ActorError),
    #[error("must name at least one actor")]
    NoActor,
    #[error("must name at least one operation")]
    NoOperation,
    #[error(transparent)]
    OperationUnknown(#[from] UnknownOperationError),
    #[error(transparent)]
    PathRefused(#[from] ConfiguredPathError),
}

impl GrantError {
    fn field(&self) -> &'static str {
        match self {
            Self::ActorMalformed(_) | Self::NoActor => "actors",
            Self::NoOperation | Self::OperationUnknown(_) => "operations",
            Self::PathRefused(_) => "path",
        }
    }
}
