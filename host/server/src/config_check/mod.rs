//! Looking a configuration over without starting anything, and finding everything that is wrong with it at once.
//!
//! [`shape`] holds it against the schema. Each other file looks at the sections of its name, and at the files that they name,
//! with what the server itself reads them with. A setting that is mistaken is left out, and the
//! rest is looked at all the same.

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

/// What is wrong with a configuration.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What a server would not start with, or would not do as it is told.
    pub(crate) mistakes: Vec<Finding>,
    /// What an operator should know of.
    pub(crate) warnings: Vec<Finding>,
}

/// Something about one setting.
#[derive(Debug)]
pub(crate) struct Finding {
    setting: String,
    what: String,
}

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Whether plugins are loaded.
    pub(crate) loads_plugins: bool,
    /// Whether the database is connected to. Nothing is changed there.
    pub(crate) connects: bool,
}

/// Looks a configuration over.
///
/// # Errors
/// When the file can't be read, or is no TOML.
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
        // Whatever no section's own check knows of.
        findings.taken("the configuration", Config::load(file));
    }
    Ok(findings)
}

impl Findings {
    /// Adds a mistake, unless one of this setting is known already.
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

    /// What was made of a setting; a mistake is added where nothing could be.
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
    /// Something about a setting, on one line.
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
