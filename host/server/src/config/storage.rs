//! Where credentials are kept.

use std::{fmt, path::PathBuf};

use keywright_storage::{DatabaseOptions, PostgresOptions, SqliteOptions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{encryption::SecretSource, number::Number};
use crate::started::StartRefused;

/// Where credentials are kept: in a file of SQLite, or on a server of PostgreSQL.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StorageConfig {
    /// The SQLite file. It is made when it is absent, for its owner alone; its folder must be there. Either this or `url`.
    file: Option<PathBuf>,
    /// Whether a server creates `file` if it is absent or empty. Set it to `false` after the first start: a server then refuses
    /// to start without its database, for instance because a volume is not mounted. A server never creates the database again
    /// while the file next to it that ends in `.created` exists.
    #[serde(default = "file_creation_enabled")]
    file_creation_enabled: bool,
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
    #[serde(default)]
    readers_max: Number<1, 1_000, 4>,
    /// How many writes go on at once in PostgreSQL, each on a connection of its own; those that end together share what they
    /// cost the disk. In SQLite it is one, and those that come meanwhile are written together.
    #[serde(default)]
    writers_max: Number<1, 1_000, 16>,
    /// How long a request waits for the database before it is answered with 503, in seconds.
    #[serde(default)]
    wait_seconds_max: Number<1, 3_600, 10>,
}

impl fmt::Debug for StorageConfig {
    /// Without the URL, which may hold a password, although it must not.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StorageConfig")
            .finish_non_exhaustive()
    }
}

impl StorageConfig {
    /// The same in the words of the storage.
    pub(crate) fn options(&self) -> Result<DatabaseOptions, StartRefused> {
        let wait_max = self.wait_seconds_max.seconds();
        let readers_max = self.readers_max.count_u32();
        match (&self.file, &self.url) {
            (Some(file), None) => {
                self.refuse_settings_of_a_server()?;
                Ok(DatabaseOptions::Sqlite(SqliteOptions {
                    path: file.clone(),
                    may_create: self.file_creation_enabled,
                    readers_max,
                    wait_max,
                }))
            }
            (None, Some(url)) => Ok(DatabaseOptions::Postgres(PostgresOptions {
                url: url.clone(),
                password: self.password()?.map(SecretSource::read).transpose()?,
                root_certificate: self.root_certificate.clone(),
                readers_max,
                writers_max: self.writers_max.count_u32(),
                wait_max,
            })),
            _ => Err(StartRefused::new(
                "the storage must have either a file, for SQLite, or a url, for PostgreSQL",
            )),
        }
    }

    /// How many connections there are to the database at most.
    pub(crate) fn connections_max(&self) -> usize {
        let writers_max = if self.url.is_some() {
            self.writers_max.count()
        } else {
            1
        };
        self.readers_max.count() + writers_max
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
    fn writers_of_postgres_are_connections_and_sqlite_has_one() {
        let of_file = storage("file = \"a.db\"\nreaders_max = 7\nwriters_max = 9");
        assert_eq!(of_file.connections_max(), 8);
        let of_server = storage("url = \"postgres://db/a\"\nreaders_max = 7\nwriters_max = 9");
        assert_eq!(of_server.connections_max(), 16);
    }

    #[test]
    fn a_url_is_not_shown() {
        let storage = storage("url = \"postgres://keywright:hunter2@db/a\"");
        let shown = format!("{storage:?} {storage:#?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
