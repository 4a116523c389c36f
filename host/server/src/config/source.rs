//! Reads the file and the environment variables that override its settings.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use figment::{
    Figment,
    error::Kind,
    providers::{Env, Format, Toml},
    value::{Uncased, UncasedStr},
};

use crate::started::StartupError;

/// A section of the configuration.
pub(crate) trait Section {
    /// Returns the configured paths.
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        Vec::new()
    }

    /// Makes relative paths relative to the configuration's folder.
    fn resolve_paths(&mut self, folder: &Path) {
        for path in self.paths_mut() {
            *path = folder.join(&*path);
        }
    }
}

/// Refuses a named pipe, a device and a very large file. Reading it could take forever or fill the memory, and all later reloads
/// would wait.
pub(crate) fn require_readable(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > FILE_BYTES_MAX {
        let rule = format!("it is larger than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::other(rule));
    }
    Ok(())
}

/// Reads a text file.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    require_readable(path)?;
    fs::read_to_string(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::InvalidData => io::Error::new(cause.kind(), "the file is not UTF-8"),
        _ => cause,
    })
}

/// Reads the file and the environment without validating the settings. An error never repeats the contents, which may be
/// secrets.
pub(crate) fn read(path: &Path) -> Result<Figment, StartupError> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(metadata) if metadata.is_dir() => {
            let what = format!("{shown} is a folder; name a configuration file");
            return Err(StartupError::new(what));
        }
        Ok(_) => return Err(StartupError::new(format!("{shown} is not a regular file"))),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            let what = format!("there is no configuration at {shown}");
            return Err(StartupError::new(what));
        }
        Err(cause) => return Err(StartupError::file("reading", path, cause)),
    }
    let refused = |cause: String| StartupError::file("reading the configuration", path, cause);
    let text = read_text(path).map_err(|cause| refused(cause.to_string()))?;
    text.parse::<toml::Table>().map_err(|cause| {
        let before = cause.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        let why = match cause.message() {
            "" => "a value is missing".to_owned(),
            message => message
                .trim_end_matches(" to fit in target type")
                .replace('\n', ", "),
        };
        refused(format!("malformed TOML in line {line}: {why}"))
    })?;
    let environment = environment();
    // figment parses a variable and its name with recursion.
    let is_too_deep = |(setting, value): &(Uncased<'_>, String)| {
        setting.as_str().split('.').count().max(depth(value)) > VARIABLE_DEPTH_MAX
    };
    if let Some((setting, _)) = environment.iter().find(is_too_deep) {
        return Err(StartupError::new(format!(
            "{}: arrays and tables must be nested at most {VARIABLE_DEPTH_MAX} levels deep",
            variable(setting.as_str())
        )));
    }
    Ok(Figment::new().merge(Toml::string(&text)).merge(environment))
}

/// Returns the maximum nesting of the arrays and tables of a variable. Brackets and braces in strings also count.
fn depth(value: &str) -> usize {
    let depths = value.bytes().scan(0_usize, |depth, byte| {
        match byte {
            b'[' | b'{' => *depth += 1,
            b']' | b'}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some(*depth)
    });
    depths.max().unwrap_or_default()
}

/// Returns the environment variables that override settings.
fn environment() -> Env {
    let is_ours = |name: &UncasedStr| {
        let is_clients = name
            .as_str()
            .get(..CLIENT_PREFIX.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(CLIENT_PREFIX));
        !is_clients && name != "log" && name != "token"
    };
    Env::prefixed("KEYWRIGHT_").filter(is_ours).split("__")
}

/// Returns an environment variable that figment ignores, because a part of its name is empty.
pub(super) fn ignored_variable() -> Option<String> {
    let mut names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.find(|name| {
        let name = name.to_ascii_lowercase();
        name.strip_prefix("keywright_").is_some_and(|setting| {
            !setting.starts_with(CLIENT_PREFIX)
                && setting.replace("__", ".").split('.').any(str::is_empty)
        })
    })
}

/// Returns the environment variable that sets a setting. A variable overrides a list as a whole.
pub(super) fn source_of(setting: &str) -> Option<String> {
    let list = setting.split('[').next().unwrap_or_default();
    set_variable(list, str::is_empty)
}

/// Returns the environment variable that sets a setting, or a setting within it.
pub(super) fn set_variable_within(setting: &str) -> Option<String> {
    set_variable(setting, |rest| rest.is_empty() || rest.starts_with("__"))
}

/// Returns a variable in the environment whose name begins with the variable of the setting, and continues as required. Names
/// are case-insensitive.
fn set_variable(setting: &str, continues: impl Fn(&str) -> bool) -> Option<String> {
    let variable = variable(setting);
    let mut names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.find(|name| {
        let upper = name.to_ascii_uppercase();
        upper.strip_prefix(&variable).is_some_and(&continues)
    })
}

/// Describes an error that the schema does not detect, without the value, which may be a secret.
pub(crate) fn in_words(kind: &Kind) -> String {
    match kind {
        Kind::InvalidType(_, expected)
        | Kind::InvalidValue(_, expected)
        | Kind::InvalidLength(_, expected) => format!("must be {expected}"),
        Kind::UnknownVariant(_, expected) => format!("must be one of {}", expected.join(", ")),
        Kind::Message(message) if message == INVALID_ADDRESS => {
            "must be an IP address, without a prefix length".to_owned()
        }
        Kind::Message(message) if message.starts_with("UUID parsing failed") => {
            "must be a UUID".to_owned()
        }
        other => other.to_string(),
    }
}

/// The message of the standard library for a malformed IP address.
const INVALID_ADDRESS: &str = "invalid IP address syntax";

/// Returns the environment variable that overrides a setting.
pub(super) fn variable(name: &str) -> String {
    format!("KEYWRIGHT_{}", name.replace('.', "__").to_uppercase())
}

/// Joins the names of a section and a setting.
pub(crate) fn joined(section: &str, field: &str) -> String {
    if section.is_empty() {
        field.to_owned()
    } else {
        format!("{section}.{field}")
    }
}

/// Returns the full name of the setting at a path within a section. An index of a list is in brackets.
pub(crate) fn name_within(section: &str, path: &[String]) -> String {
    let is_index = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_digit());
    path.iter().fold(section.to_owned(), |name, segment| {
        if is_index(segment) && !name.is_empty() {
            format!("{name}[{segment}]")
        } else {
            joined(&name, segment)
        }
    })
}

/// Maximum size of the configuration and of the files that it names, except for components.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Maximum nesting of arrays and tables in a variable, more than any setting needs.
const VARIABLE_DEPTH_MAX: usize = 64;

/// The prefix of the client's variables, after `KEYWRIGHT_`. No section's name may start with it.
const CLIENT_PREFIX: &str = "client_";

#[cfg(test)]
mod tests {
    use std::{fs::File, process::Command};

    use super::*;

    #[test]
    fn a_named_pipe_and_a_large_file_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let refused = read_text(&pipe).unwrap_err();
        assert_eq!(refused.to_string(), "it is not a regular file");

        let large = folder.path().join("large");
        File::create(&large)
            .unwrap()
            .set_len(FILE_BYTES_MAX + 1)
            .unwrap();
        let refused = read_text(&large).unwrap_err();
        assert_eq!(refused.to_string(), "it is larger than 16777216 bytes");
    }
}
