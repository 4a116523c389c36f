//! The variables of the environment.

use std::{ffi::OsString, path::PathBuf};

use super::SettingsRefused;
use crate::Secret;

/// What the environment says. A variable that is empty is as good as absent.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) server: Option<String>,
    pub(super) ca_cert: Option<PathBuf>,
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) output: Option<String>,
    pub(super) retries: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<Secret>,
    pub(super) token: Option<Secret>,
}

impl Environment {
    /// Reads the environment through this function.
    ///
    /// # Errors
    /// When a variable is not UTF-8, or begins as ours do and is none of them.
    pub(super) fn read(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, SettingsRefused> {
        let mut environment = Self::default();
        for (name, value) in variables {
            let Some(name) = name.to_str() else { continue };
            let Some(setting) = name.strip_prefix(PREFIX) else {
                continue;
            };
            if value.is_empty() {
                continue;
            }
            let value = value
                .into_string()
                .map_err(|_| SettingsRefused::NotUnicode(name.to_owned()))?;
            environment.take(name, setting, value)?;
        }
        Ok(environment)
    }

    fn take(&mut self, name: &str, setting: &str, value: String) -> Result<(), SettingsRefused> {
        match setting {
            "SERVER" => self.server = Some(value),
            "CA_CERT" => self.ca_cert = Some(value.into()),
            "CERT" => self.cert = Some(value.into()),
            "KEY" => self.key = Some(value.into()),
            "OUTPUT" => self.output = Some(value),
            "RETRIES" => self.retries = Some(value),
            "ID" => self.client_id = Some(value),
            "SECRET" => self.client_secret = Some(Secret::new(value)),
            "TOKEN" => self.token = Some(Secret::new(value)),
            "DIRECTORY" => {}
            _ => return Err(SettingsRefused::VariableUnknown(name.to_owned())),
        }
        Ok(())
    }
}

/// How the names of the variables begin.
const PREFIX: &str = "KEYWRIGHT_CLIENT_";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, SettingsRefused> {
        Environment::read(
            variables
                .iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value))),
        )
    }

    #[test]
    fn variables_of_others_and_empty_ones_are_left_alone() {
        let read = read(&[
            ("KEYWRIGHT_SERVER__LISTEN", "x"),
            ("KEYWRIGHT_CLIENT_SERVER", ""),
            ("KEYWRIGHT_CLIENT_ID", "app"),
        ])
        .unwrap();
        assert_eq!(read.server, None);
        assert_eq!(read.client_id.as_deref(), Some("app"));
    }

    #[test]
    fn a_variable_that_looks_like_ours_and_is_not_is_named() {
        let refused = read(&[("KEYWRIGHT_CLIENT_SERVR", "x")]).unwrap_err();
        assert!(refused.to_string().contains("KEYWRIGHT_CLIENT_SERVR"));
    }

    #[test]
    fn a_secret_is_not_in_what_is_printed() {
        let read = read(&[("KEYWRIGHT_CLIENT_SECRET", "hunter2")]).unwrap();
        assert!(!format!("{read:?}").contains("hunter2"));
    }
}
