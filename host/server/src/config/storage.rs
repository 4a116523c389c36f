//! The database that stores credentials.

use std::path::PathBuf;

use keywright_storage::{Database, DatabaseOptions, PostgresOptions, SqliteOptions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    findings::Findings,
    source::Section,
    values::{Number, SecretSource},
};
use crate::{
    ownership::require_fixed_folder,
    started::{StartupContext, StartupError},
    tls::certificates,
};

/// The database: a SQLite file or a PostgreSQL server.
// It has no `Debug`, because the URL may contain a password although it must not.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StorageConfig {
    /// The SQLite file. If missing, it is created, accessible only by its owner; its folder must exist. Set either
    /// this or `url`.
    file: Option<PathBuf>,
    /// Whether the server creates `file` if it is missing or empty. Set it to `false` after the first start, so that
    /// the server refuses to start without its database, for instance because a volume is not mounted. The server never
    /// recreates the database while the file with the same name and the suffix `.created` exists.
    #[serde(default = "file_creation_enabled")]
    file_creation_enabled: bool,
    /// The PostgreSQL database: `postgres://user@host:port/database`, without a password. The database server's certificate
    /// must be trusted and name the host, unless `?sslmode=` sets a weaker mode.
    url: Option<String>,
    /// The file that contains the password for `url`. A trailing line break is ignored. Set at most one
    /// of this and `password_environment`.
    password_file: Option<PathBuf>,
    /// The environment variable that contains the password for `url`.
    password_environment: Option<String>,
    /// The CA certificates (PEM) that are trusted to sign the database server's certificate. Defaults to public CAs.
    root_certificate: Option<PathBuf>,
    /// Maximum number of concurrent reads, each on its own connection.
    #[serde(default)]
    readers_max: Number<1, 1_000, 4>,
    /// Maximum number of concurrent writes to PostgreSQL, each on its own connection; writes that commit together share
    /// one flush. SQLite has one writer, which commits waiting writes together.
    #[serde(default)]
    writers_max: Number<1, 1_000, 16>,
    /// Maximum time a request waits for the database; then it gets status 503.
    #[serde(default)]
    wait_seconds_max: Number<1, 3_600, 10>,
}

impl Section for StorageConfig {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        self.file
            .iter_mut()
            .chain(&mut self.password_file)
            .chain(&mut self.root_certificate)
            .collect()
    }
}

impl StorageConfig {
    /// Converts the configuration to the storage's options.
    pub(crate) fn options(&self) -> Result<DatabaseOptions, StartupError> {
        let wait_max = self.wait_seconds_max.seconds();
        let readers_max = self.readers_max.count_u32();
        match (&self.file, &self.url) {
            (Some(file), None) => {
                self.check_no_postgres_settings()?;
                Ok(DatabaseOptions::Sqlite(SqliteOptions {
                    path: file.clone(),
                    may_create: self.file_creation_enabled,
                    readers_max,
                    wait_max,
                }))
            }
            (None, Some(url)) => Ok(DatabaseOptions::Postgres(PostgresOptions {
                url: url.clone(),
                password: SecretSource::read_optional(self.password()?, PASSWORD)?,
                root_certificate: self.checked_root_certificate()?,
                readers_max,
                writers_max: self.writers_max.count_u32(),
                wait_max,
            })),
            _ => Err(StartupError::new(
                "exactly one of storage.file (SQLite) and storage.url (PostgreSQL) must be set",
            )),
        }
    }

    /// Returns the options for a command that only reads the database, which an administrator may run as root.
    pub(crate) fn options_to_read(&self) -> Result<DatabaseOptions, StartupError> {
        let mut options = self.options()?;
        if let DatabaseOptions::Sqlite(file) = &mut options {
            file.path = require_fixed_folder(&file.path)?;
        }
        Ok(options)
    }

    /// Returns the maximum number of database connections.
    pub(crate) fn connections_max(&self) -> usize {
        let writers_max = if self.url.is_some() {
            self.writers_max.count()
        } else {
            1
        };
        self.readers_max.count() + writers_max
    }

    /// Checks the section. If requested, connects to the database, without changing it.
    pub(crate) async fn check(&self, connects: bool, findings: &mut Findings) {
        if self.file.is_none()
            && let Ok(Some(password)) = self.password()
        {
            let setting = password.setting(PASSWORD);
            match findings.ok_or_report(&setting, password.read()) {
                Some(password) if password.expose().is_empty() => {
                    findings.warning(setting, "the password is empty");
                }
                Some(_) => {}
                None => return,
            }
        }
        let Some(options) = findings.ok_or_report("storage", self.options()) else {
            return;
        };
        if let DatabaseOptions::Sqlite(options) = &options {
            findings.check_writable_file("storage.file", &options.path);
        }
        if let Some(file) = &self.password_file {
            findings.warn_if_world_accessible("storage.password_file", file);
        }
        let parsed = options.check().map_err(StartupError::from);
        if findings.ok_or_report("storage.url", parsed).is_some() && connects {
            let setting = match &options {
                DatabaseOptions::Postgres(_) => "storage.url",
                DatabaseOptions::Sqlite(_) => "storage.file",
            };
            if let Some(options) = findings.ok_or_report(setting, self.options_to_read()) {
                let reached = Database::reach(&options).await;
                findings.ok_or_report(setting, reached.map_err(StartupError::from));
            }
        }
    }

    /// Returns the file with trusted CAs, if it is usable.
    fn checked_root_certificate(&self) -> Result<Option<PathBuf>, StartupError> {
        if let Some(file) = &self.root_certificate {
            certificates::read_trusted_authorities("the database server", file)
                .while_doing("storage.root_certificate")?;
        }
        Ok(self.root_certificate.clone())
    }

    fn password(&self) -> Result<Option<SecretSource<'_>>, StartupError> {
        let file = self.password_file.as_deref();
        SecretSource::of(PASSWORD, file, self.password_environment.as_deref())
    }

    fn check_no_postgres_settings(&self) -> Result<(), StartupError> {
        let postgres_settings = [
            ("password_file", self.password_file.is_some()),
            ("password_environment", self.password_environment.is_some()),
            ("root_certificate", self.root_certificate.is_some()),
        ];
        match postgres_settings.iter().find(|(_, is_set)| *is_set) {
            Some((name, _)) => Err(StartupError::new(format!(
                "storage.{name}: can only be set with storage.url, not with storage.file"
            ))),
            None => Ok(()),
        }
    }
}

/// The prefix of the settings that locate the password.
const PASSWORD: &str = "storage.password";

fn file_creation_enabled() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(lines: &str) -> StorageConfig {
        toml::from_str(lines).unwrap()
    }

    #[test]
    fn sqlite_needs_one_writer_connection_and_postgres_writers_max() {
        let of_file = storage("file = \"a.db\"\nreaders_max = 7\nwriters_max = 9");
        assert_eq!(of_file.connections_max(), 8);
        let of_server = storage("url = \"postgres://db/a\"\nreaders_max = 7\nwriters_max = 9");
        assert_eq!(of_server.connections_max(), 16);
    }
}
