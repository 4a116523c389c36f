//! Access tokens from a file or a variable.

use std::{
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

use super::{FileFailure, SettingsRefused};
use crate::{Secret, input::without_line_end};

/// Where an access token comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// This file.
    File(PathBuf),
    /// The environment variable with this name.
    Variable(&'static str),
}

impl fmt::Display for TokenSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(formatter),
            Self::Variable(name) => formatter.write_str(name),
        }
    }
}

/// Returns the access token of the file or, without a file, of the variable.
pub(super) fn gather(
    file: Option<&Path>,
    variable: Option<&(&'static str, Secret)>,
) -> Result<Option<(Secret, TokenSource)>, SettingsRefused> {
    Ok(match (file, variable) {
        (Some(path), _) => Some((token_of_file(path)?, TokenSource::File(path.to_owned()))),
        (None, Some((name, token))) => {
            let token = token_of(token.expose(), name)?;
            Some((token, TokenSource::Variable(name)))
        }
        (None, None) => None,
    })
}

/// Reads an access token from a file.
fn token_of_file(path: &Path) -> Result<Secret, SettingsRefused> {
    let failed = |cause| FileFailure::new(path, "read", cause);
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES_MAX + 3));
    // Room for a line end and one excess byte.
    let bytes_max = BYTES_MAX as u64 + 3;
    file.take(bytes_max)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let name = path.display().to_string();
    let text = str::from_utf8(&bytes).map_err(|_| SettingsRefused::TokenMalformed(name.clone()))?;
    token_of(without_line_end(text), &name)
}

/// Checks that a text can be sent as an access token.
fn token_of(text: &str, name: &str) -> Result<Secret, SettingsRefused> {
    let is_token =
        (1..=BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_token {
        Ok(Secret::new(text.to_owned()))
    } else {
        Err(SettingsRefused::TokenMalformed(name.to_owned()))
    }
}

/// The longest access token, in bytes. Servers accept 16 KiB.
pub(super) const BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
            let read = token_of_file(&file);
            let found = read.as_ref().ok().map(Secret::expose);
            assert_eq!(found, token);
            if let Err(refused) = read {
                let refused = refused.to_string();
                assert!(
                    refused.contains("token") && !refused.contains("hunter2"),
                    "{refused}"
                );
            }
        }
    }
}
