//! Checks a configuration without starting the server, and reports all errors at once.
//!
//! [`shape`] validates it against the schema. Each other module checks the sections of its name and the files they
//! refer to, with the code that the server uses. An invalid setting is removed, so that the rest is still checked.

mod access;
mod authentication;
mod encryption;
mod management;
mod plugins;
mod registry;
mod server;
mod shape;
mod storage;

use std::{fmt, path::Path};

use crate::{
    config::{self, Config, Sections},
    started::StartRefused,
};

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
    setting: String,
    what: String,
}

/// The extent of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Whether plugins are loaded.
    pub(crate) loads_plugins: bool,
    /// Whether to connect to the database. Nothing is changed there.
    pub(crate) connects: bool,
}

/// Checks a configuration.
///
/// # Errors
/// If the file can't be read or is not TOML.
pub(crate) async fn check(file: &Path, extent: Extent) -> Result<Findings, StartRefused> {
    let figment = config::read(file)?;
    let mut findings = Findings::default();
    shape::check(&figment, &mut findings);
    let folder = file.parent().unwrap_or(Path::new(""));
    let mistaken = findings.mistakes.iter();
    let mistaken = mistaken.map(|mistake| mistake.setting.as_str()).collect();
    let (sections, unreadable) = Sections::read(&figment, folder, mistaken);
    for (setting, what) in unreadable {
        findings.mistake(setting, what);
    }
    server::check(&sections, &mut findings);
    storage::check(&sections, extent.connects, &mut findings).await;
    encryption::check(&sections, &mut findings);
    authentication::check(&sections, &mut findings);
    management::check(&sections, &mut findings);
    registry::check(&sections, &mut findings);
    plugins::check(sections, extent, &mut findings).await;
    if findings.mistakes.is_empty() {
        // Errors that no section's check reports.
        findings.taken("the configuration", Config::load(file));
    }
    Ok(findings)
}

impl Findings {
    /// Adds an error, unless the setting already has one.
    pub(crate) fn mistake(&mut self, setting: impl Into<String>, what: impl fmt::Display) {
        let setting = setting.into();
        if !self.has_mistake(&setting) {
            self.mistakes.push(Finding::new(setting, what));
        }
    }

    /// Adds a warning.
    pub(crate) fn warning(&mut self, setting: impl Into<String>, what: impl fmt::Display) {
        self.warnings.push(Finding::new(setting.into(), what));
    }

    /// Returns the value of a setting, or adds the error.
    pub(crate) fn taken<T>(
        &mut self,
        setting: impl Into<String>,
        outcome: Result<T, StartRefused>,
    ) -> Option<T> {
        match outcome {
            Ok(made) => Some(made),
            Err(refused) => {
                self.mistake(setting, refused.with_causes());
                None
            }
        }
    }

    fn has_mistake(&self, setting: &str) -> bool {
        let mut mistakes = self.mistakes.iter();
        mistakes.any(|mistake| mistake.setting == setting)
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
