//! Settings from environment variables, and access tokens from a file or a variable.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

use crate::{
    Secret,
    client::{TOKEN_BYTES_MAX, is_access_token},
    command_error::CommandError,
    input::without_line_end,
    new_file::FileAccessError,
};

/// The environment variables with settings, by name. Empty variables are ignored.
#[derive(Debug, Default)]
pub(super) struct Environment(HashMap<String, Secret>);

impl Environment {
    pub(super) fn read(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, CommandError> {
        let mut read = HashMap::new();
        for (name, value) in variables {
            let Some(name) = name.to_str() else { continue };
            let setting = name.strip_prefix(PREFIX);
            let is_ours = setting.is_some() || name == TOKEN;
            if !is_ours || value.is_empty() {
                continue;
            }
            let value = value.into_string().map_err(|_| {
                CommandError::Other(format!("environment variable {name} is not UTF-8"))
            })?;
            if setting.is_some_and(|setting| !SETTINGS.contains(&setting)) {
                let known = SETTINGS.join(", ");
                return Err(CommandError::Other(format!(
                    "unknown environment variable {name}; the name after {PREFIX} must be one of {known}"
                )));
            }
            read.insert(name.to_owned(), Secret::new(value));
        }
        Ok(Self(read))
    }

    /// Returns the value of the variable whose name is [`PREFIX`] and this setting.
    pub(super) fn secret(&self, setting: &str) -> Option<&Secret> {
        self.0.get(&format!("{PREFIX}{setting}"))
    }

    pub(super) fn text(&self, setting: &str) -> Option<String> {
        Some(self.secret(setting)?.expose().to_owned())
    }

    pub(super) fn path(&self, setting: &str) -> Option<PathBuf> {
        self.text(setting).map(PathBuf::from)
    }

    /// Returns the access token, and the variable that contains it.
    fn token(&self) -> Option<(&'static str, &Secret)> {
        let mut variables = [TOKEN, CLIENT_TOKEN].into_iter();
        variables.find_map(|name| Some((name, self.0.get(name)?)))
    }
}

/// Returns the access token of the file or, without a file, of the variable, and the name of this file or variable.
pub(super) fn access_token(
    file: Option<&Path>,
    environment: &Environment,
) -> Result<Option<(Secret, String)>, CommandError> {
    Ok(match (file, environment.token()) {
        (Some(path), _) => Some((read_token(path)?, path.display().to_string())),
        (None, Some((name, token))) => Some((check_token(token.expose(), name)?, name.to_owned())),
        (None, None) => None,
    })
}

/// Reads an access token from a file.
fn read_token(path: &Path) -> Result<Secret, CommandError> {
    let failed = |cause| FileAccessError::new(path, "read", cause);
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(TOKEN_BYTES_MAX + 3));
    // Room for a line end and one excess byte.
    let bytes_max = TOKEN_BYTES_MAX as u64 + 3;
    file.take(bytes_max)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let name = format!("the token file {}", path.display());
    let text = str::from_utf8(&bytes).map_err(|_| token_malformed(&name))?;
    check_token(without_line_end(text), &name)
}

/// Checks that a text can be sent as an access token.
fn check_token(text: &str, name: &str) -> Result<Secret, CommandError> {
    if is_access_token(text) {
        Ok(Secret::new(text.to_owned()))
    } else {
        Err(token_malformed(name))
    }
}

fn token_malformed(name: &str) -> CommandError {
    CommandError::Other(format!(
        "{name} must contain an access token: 1 to {TOKEN_BYTES_MAX} bytes of visible ASCII on one line"
    ))
}

/// The variable with an access token.
const TOKEN: &str = "KEYWRIGHT_TOKEN";

/// An alias of [`TOKEN`], ignored if both are set.
const CLIENT_TOKEN: &str = "KEYWRIGHT_CLIENT_TOKEN";

const PREFIX: &str = "KEYWRIGHT_CLIENT_";

const SETTINGS: [&str; 13] = [
    "SERVER",
    "CA_CERT",
    "CERT",
    "KEY",
    "OUTPUT",
    "RETRIES",
    "ID",
    "SECRET",
    "SCOPE",
    "AUDIENCE",
    "RESOURCE",
    "TOKEN",
    "DIRECTORY",
];

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, CommandError> {
        let variables = variables.iter().copied();
        Environment::read(variables.map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn empty_variables_and_server_variables_are_ignored() {
        let read = read(&[
            ("KEYWRIGHT_SERVER__LISTEN", "x"),
            ("KEYWRIGHT_CLIENT_SERVER", ""),
            ("KEYWRIGHT_CLIENT_ID", "app"),
        ])
        .unwrap();
        assert_eq!(read.text("SERVER"), None);
        assert_eq!(read.text("ID").as_deref(), Some("app"));
    }

    #[test]
    fn the_error_for_an_unknown_variable_contains_its_name() {
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
            let read = read(variables).unwrap();
            let (found, token) = read.token().unwrap();
            assert_eq!((found, token.expose()), (name, value));
        }
    }

    #[test]
    fn tokens_are_one_line_of_visible_ascii_of_limited_length() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let longest = "x".repeat(16 * 1024);
        for (bytes, token) in [
            (&b"a.b-c_d~e+f/g="[..], Some("a.b-c_d~e+f/g=")),
            (b"a\n", Some("a")),
            (b"a\r\n", Some("a")),
            (longest.as_bytes(), Some(longest.as_str())),
            (format!("{longest}\r\n").as_bytes(), Some(longest.as_str())),
            (format!("{longest}x").as_bytes(), None),
            (b"", None),
            (b"\n", None),
            (b"a\n\n", None),
            (b"hunter2 hunter2", None),
            (b"hunter2\xff", None),
            ("hunter2é".as_bytes(), None),
        ] {
            fs::write(&file, bytes).unwrap();
            let read = read_token(&file);
            let found = read.as_ref().ok().map(Secret::expose);
            assert_eq!(found, token);
            if let Err(refused) = read {
                let refused = refused.to_string();
                assert!(
                    refused.contains("token must contain") && !refused.contains("hunter2"),
                    "{refused}"
                );
            }
        }
        let variables = read(&[("KEYWRIGHT_TOKEN", "hunter2\nx")]).unwrap();
        let refused = access_token(None, &variables).unwrap_err().to_string();
        assert!(
            refused.starts_with("KEYWRIGHT_TOKEN must contain") && !refused.contains("hunter2"),
            "{refused}"
        );
    }
}
