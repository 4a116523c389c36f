//! Where credentials are kept.

use std::{path::PathBuf, time::Duration};

use keywright_storage::{DatabaseOptions, PostgresOptions, SqliteOptions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::encryption::SecretSource;
use crate::started::StartRefused;

/// Where credentials are kept: in a file of SQLite, or on a server of PostgreSQL.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StorageConfig {
    /// The SQLite file. It is made when it is absent, for its owner alone; its folder must be there. Either this or `url`.
    file: Option<PathBuf>,
    /// The database of PostgreSQL: `postgres://user@host:port/database`, without a password. Its
    /// certificate must be trusted and bear the host's name, unless `?sslmode=` says otherwise.
    url: Option<String>,
    /// The file that holds the password of the URL's user; either this or `password_environment`, or none. A line break at its end is no part of it.
    pub(crate) password_file: Option<PathBuf>,
    /// The variable of the environment that holds that password.
    password_environment: Option<String>,
    /// The certificates of the authorities that are trusted to sign the database server's, PEM; those of
    /// the public without it.
    pub(crate) root_certificate: Option<PathBuf>,
    /// How many reads go on at once, each on a connection of its own.
    #[schemars(range(min = 1))]
    #[serde(default = "readers_max")]
    pub(crate) readers_max: u32,
    /// How many writes go on at once in PostgreSQL, each on a connection of its own; those that end together share what they
    /// cost the disk. In SQLite it is one, and those that come meanwhile are written together.
    #[schemars(range(min = 1))]
    #[serde(default = "writers_max")]
    writers_max: u32,
    /// How long a request waits for the database before it is answered with 503, in seconds.
    #[schemars(range(min = 1))]
    #[serde(default = "wait_seconds_max")]
    wait_seconds_max: u64,
}

impl StorageConfig {
    /// The same in the words of the storage.
    pub(crate) fn options(&self) -> Result<DatabaseOptions, StartRefused> {
        let wait_max = Duration::from_secs(self.wait_seconds_max);
        if self.readers_max == 0 || self.writers_max == 0 || wait_max.is_zero() {
            return Err(StartRefused::new(
                "storage.readers_max, writers_max and wait_seconds_max must be at least 1",
            ));
        }
        match (&self.file, &self.url) {
            (Some(file), None) => {
                self.refuse_settings_of_a_server()?;
                Ok(DatabaseOptions::Sqlite(SqliteOptions {
                    path: file.clone(),
                    readers_max: self.readers_max,
                    wait_max,
                }))
            }
            (None, Some(url)) => Ok(DatabaseOptions::Postgres(PostgresOptions {
                url: url.clone(),
                password: self.password()?.map(SecretSource::read).transpose()?,
                root_certificate: self.root_certificate.clone(),
                readers_max: self.readers_max,
                writers_max: self.writers_max,
                wait_max,
            })),
            _ => Err(StartRefused::new(
                "the storage must have either a file, for SQLite, or a url, for PostgreSQL",
            )),
        }
    }

    /// The files that are named.
    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.file
            .iter_mut()
            .chain(&mut self.password_file)
            .chain(&mut self.root_certificate)
    }

    fn password(&self) -> Result<Option<SecretSource<'_>>, StartRefused> {
        match (&self.password_file, &self.password_environment) {
            (Some(file), None) => Ok(Some(SecretSource::File(file))),
            (None, Some(name)) => Ok(Some(SecretSource::Environment(name))),
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(StartRefused::new(
                "the storage must have one of password_file and password_environment",
            )),
        }
    }

    fn refuse_settings_of_a_server(&self) -> Result<(), StartRefused> {
        let is_any_there = self.password_file.is_some()
            || self.password_environment.is_some()
            || self.root_certificate.is_some();
        if is_any_there {
            return Err(StartRefused::new(
                "storage.password_file, password_environment and root_certificate belong to a url, not to a file",
            ));
        }
        Ok(())
    }
}

fn readers_max() -> u32 {
    4
}

fn writers_max() -> u32 {
    16
}

fn wait_seconds_max() -> u64 {
    10
}
