//! The findings of a check, and read-only checks of access to files.

use std::{
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use keywright_runtime::broken_rule_of_private_folder;
use rustix::{fs::Access, process::geteuid};

use super::source::{joined, source_of};
use crate::started::StartupError;

/// The errors and warnings of a configuration.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Errors: the server would not start, or would not follow its configuration.
    pub(crate) mistakes: Vec<Finding>,
    /// Warnings for the operator.
    pub(crate) warnings: Vec<Finding>,
}

/// A finding about one setting.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) setting: String,
    what: String,
}

impl Findings {
    /// Adds an error, unless the setting already has one. Names the environment variable that sets the setting.
    pub(crate) fn mistake(&mut self, setting: impl Into<String>, what: impl fmt::Display) {
        let setting = setting.into();
        if !self.has_mistake(&setting) {
            let mut what = what.to_string();
            if let Some(variable) = source_of(&setting)
                && !what.contains(&variable)
            {
                what = format!("{what} ({variable} in the environment)");
            }
            self.mistakes.push(Finding::new(setting, what));
        }
    }

    /// Adds a warning.
    pub(crate) fn warning(&mut self, setting: impl Into<String>, what: impl fmt::Display) {
        self.warnings.push(Finding::new(setting.into(), what));
    }

    /// Returns the value, or adds the error to the setting. An error may begin with the name of another setting, or of a field of
    /// this setting, and a colon: then it is added there.
    pub(crate) fn ok_or_report<T>(
        &mut self,
        setting: impl Into<String>,
        result: Result<T, StartupError>,
    ) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(refused) => {
                let what = refused.with_causes();
                let (setting, what) = named_setting(&setting.into(), &what);
                self.mistake(setting, what);
                None
            }
        }
    }

    pub(crate) fn has_mistake(&self, setting: &str) -> bool {
        let mut mistakes = self.mistakes.iter();
        mistakes.any(|mistake| mistake.setting == setting)
    }

    /// Checks that the file is writable, or that it can be created in an existing folder.
    pub(super) fn check_writable_file(&mut self, setting: &str, path: &Path) {
        let shown = path.display();
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                self.mistake(setting, format!("{shown} is a folder; name a file"));
            }
            Ok(_) => self.check_access(setting, path, Access::READ_OK | Access::WRITE_OK),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                let folder = folder_of(path);
                if folder.is_dir() {
                    self.check_access(setting, &folder, Access::WRITE_OK | Access::EXEC_OK);
                } else {
                    let folder = folder.display();
                    self.mistake(
                        setting,
                        format!("there is no folder {folder}, so the file can't be created"),
                    );
                }
            }
            Err(cause) => self.mistake(setting, format!("could not access {shown}: {cause}")),
        }
    }

    /// Checks that only this user can access the folder, or that it can be created.
    pub(crate) fn check_private_folder(&mut self, setting: &str, path: &Path) {
        let shown = path.display();
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                let mut above = path.ancestors().skip(1).map(named);
                let Some(nearest) = above.find(|folder| folder.exists()) else {
                    return;
                };
                let access = Access::WRITE_OK | Access::EXEC_OK;
                return self.check_access(setting, &nearest, access);
            }
            Err(cause) => {
                return self.mistake(setting, format!("could not access {shown}: {cause}"));
            }
        };
        // The check may run as root, but the server as another user.
        let owner = Some(geteuid()).filter(|user| !user.is_root());
        if !metadata.is_dir() {
            self.mistake(setting, format!("{shown} is not a folder"));
        } else if let Some(rule) = broken_rule_of_private_folder(&metadata, owner) {
            self.mistake(setting, format!("{shown} {rule}"));
        }
    }

    /// Warns if all users can access a file that may contain a secret.
    pub(crate) fn warn_if_world_accessible(&mut self, setting: &str, path: &Path) {
        if fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o007 != 0) {
            self.warning(
                setting,
                format!(
                    "every user of this machine may read or write the file; run `chmod o= {}`",
                    path.display()
                ),
            );
        }
    }

    fn check_access(&mut self, setting: &str, path: &Path, access: Access) {
        if let Err(cause) = rustix::fs::access(path, access) {
            let cause = io::Error::from(cause);
            self.mistake(
                setting,
                format!("could not write {}: {cause}", path.display()),
            );
        }
    }
}

impl Finding {
    /// Creates a finding, on one line.
    fn new(setting: String, what: impl fmt::Display) -> Self {
        let what = what.to_string();
        let lines = what.lines().map(str::trim);
        Self {
            setting,
            what: lines.collect::<Vec<_>>().join(" "),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.setting, self.what)
    }
}

/// Returns the setting that an error names at its beginning, and the rest of the error. Defaults to `setting` and the whole error.
fn named_setting<'a>(setting: &str, what: &'a str) -> (String, &'a str) {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.[]".contains(&byte))
    };
    let section = setting.split(['.', '[']).next().unwrap_or_default();
    match what.split_once(": ") {
        Some((name, what)) if name.starts_with(section) && is_name(name) => (name.to_owned(), what),
        Some((name, what)) if is_name(name) => (joined(setting, name), what),
        _ => (setting.to_owned(), what),
    }
}

fn folder_of(path: &Path) -> PathBuf {
    named(path.parent().unwrap_or(path))
}

/// Returns the folder, or `.` if it is empty.
fn named(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        folder.to_owned()
    }
}
