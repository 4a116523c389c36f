//! Environment variables.

use std::{ffi::OsString, path::PathBuf};

use super::SettingsRefused;
use crate::Secret;

/// The settings from environment variables. Empty variables are ignored.
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
    pub(super) scope: Option<String>,
    pub(super) audience: Option<String>,
    pub(super) resource: Option<String>,
    /// The access token, and the variable that contains it.
    pub(super) token: Option<(&'static str, Secret)>,
}

impl Environment {
    /// Reads the settings from these variables.
    ///
    /// # Errors
    /// When a variable of the client is not UTF-8 or is unknown.
    pub(super) fn read(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, SettingsRefused> {
        let mut environment = Self::default();
        for (name, value) in variables {
            let Some(name) = name.to_str() else { continue };
            let setting = name.strip_prefix(PREFIX);
            let is_ours = setting.is_some() || name == TOKEN;
            if !is_ours || value.is_empty() {
                continue;
            }
            let value = value
                .into_string()
                .map_err(|_| SettingsRefused::NotUnicode(name.to_owned()))?;
            match setting {
                Some(setting) => environment.take(name, setting, value)?,
                None => environment.token = Some((TOKEN, Secret::new(value))),
            }
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
            "SCOPE" => self.scope = Some(value),
            "AUDIENCE" => self.audience = Some(value),
            "RESOURCE" => self.resource = Some(value),
            "TOKEN" => {
                let own = (CLIENT_TOKEN, Secret::new(value));
                self.token = self
                    .token
                    .take()
                    .filter(|(name, _)| *name == TOKEN)
                    .or(Some(own));
            }
            "DIRECTORY" => {}
            _ => return Err(SettingsRefused::VariableUnknown(name.to_owned())),
        }
        Ok(())
    }
}

/// The variable with an access token.
const TOKEN: &str = "KEYWRIGHT_TOKEN";

/// An alias of [`TOKEN`], ignored if both are set.
const CLIENT_TOKEN: &str = "KEYWRIGHT_CLIENT_TOKEN";

/// The prefix of the client's variables.
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
    fn empty_variables_and_those_of_the_server_are_ignored() {
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
    fn unknown_variables_with_the_prefix_are_refused_by_name() {
        let refused = read(&[("KEYWRIGHT_CLIENT_SERVR", "x")]).unwrap_err();
        assert!(refused.to_string().contains("KEYWRIGHT_CLIENT_SERVR"));
    }

    #[test]
    fn keywright_token_overrides_keywright_client_token() {
        let short = ("KEYWRIGHT_TOKEN", "short");
        let long = ("KEYWRIGHT_CLIENT_TOKEN", "long");
        for (variables, name, value) in [
            (&[short, long][..], "KEYWRIGHT_TOKEN", "short"),
            (&[long, short], "KEYWRIGHT_TOKEN", "short"),
            (&[long], "KEYWRIGHT_CLIENT_TOKEN", "long"),
        ] {
            let (found, token) = read(variables).unwrap().token.unwrap();
            assert_eq!((found, token.expose()), (name, value));
        }
    }

    #[test]
    fn debug_output_contains_no_secrets() {
        for name in [
            "KEYWRIGHT_CLIENT_SECRET",
            "KEYWRIGHT_CLIENT_TOKEN",
            "KEYWRIGHT_TOKEN",
        ] {
            let read = read(&[(name, "hunter2")]).unwrap();
            assert!(!format!("{read:?}").contains("hunter2"));
        }
    }
}
