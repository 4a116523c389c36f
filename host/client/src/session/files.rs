//! The folder of the command line, with the settings file and the session that `login` stores for later runs.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::PathBuf,
    thread,
    time::Duration,
};

use clap::ValueEnum;
use etcetera::{BaseStrategy, base_strategy};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

use super::RETRIES_MAX;
use crate::{
    LoginOptions, Secret, Tokens,
    client::StoredLogin,
    command_error::CommandError,
    new_file::{FileAccessError, Readers, write_whole},
};

/// The folder with the settings and the session.
#[derive(Clone, Debug)]
pub(crate) struct Directory(pub(super) PathBuf);

impl Directory {
    /// Returns the folder named by `KEYWRIGHT_CLIENT_DIRECTORY`, or the platform's default.
    pub(crate) fn of_environment() -> Option<Self> {
        if let Some(named) = std::env::var_os("KEYWRIGHT_CLIENT_DIRECTORY")
            && !named.is_empty()
        {
            return Some(Self(named.into()));
        }
        let platform = base_strategy::choose_native_strategy().ok()?;
        Some(Self(platform.config_dir().join("keywright")))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Reads a file in the folder. `None` if it does not exist.
    fn read(&self, name: &str) -> Result<Option<Zeroizing<String>>, FileAccessError> {
        let path = self.file(name);
        match File::open(&path).and_then(read_limited) {
            Ok(text) => Ok(Some(text)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(FileAccessError::new(&path, "read", cause)),
        }
    }

    /// Creates the folder if it does not exist.
    fn create(&self) -> Result<(), FileAccessError> {
        let failed = |cause| FileAccessError::new(&self.0, "create", cause);
        let mut folder = DirBuilder::new();
        folder.recursive(true).mode(0o700);
        folder.create(&self.0).map_err(failed)
    }

    /// Locks the session against other runs of the program until the returned file is dropped. `None` if the file system does not
    /// support locks, or if another run has not released its lock after [`LOCK_ATTEMPTS_MAX`] attempts.
    fn lock(&self) -> Option<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        // Other users who can open the folder could keep it locked. Lock the folder only if the file can't be opened.
        let file = rustix::fs::open(self.file(LOCK_FILE), flags, mode);
        let file = file
            .map_or_else(|_| File::open(&self.0), |file| Ok(file.into()))
            .ok()?;
        for _ in 0..LOCK_ATTEMPTS_MAX {
            match file.try_lock() {
                Ok(()) => return Some(file),
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_INTERVAL),
                Err(TryLockError::Error(_)) => return None,
            }
        }
        None
    }

    /// Deletes a file in the folder, or the target of a link, if it exists.
    fn delete(&self, name: &str) -> Result<(), FileAccessError> {
        let path = self.file(name);
        match fs::canonicalize(&path).and_then(fs::remove_file) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(FileAccessError::new(&path, "delete", cause))
            }
            _ => Ok(()),
        }
    }
}

fn read_limited(file: File) -> io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    let bytes = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if bytes as u64 > FILE_BYTES_MAX {
        let reason = format!("it is longer than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::other(reason));
    }
    Ok(text)
}

/// `settings.toml`. Relative paths are relative to its folder.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SettingsFile {
    pub(super) server: Option<String>,
    pub(super) ca_cert: Option<PathBuf>,
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) output: Option<OutputFormat>,
    pub(super) retries: Option<u32>,
    pub(super) client_id: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) audience: Option<String>,
    pub(super) resource: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OutputFormat {
    Json,
    Yaml,
    Table,
}

impl SettingsFile {
    pub(super) fn read(directory: &Directory) -> Result<Self, CommandError> {
        let Some(text) = directory.read(SETTINGS_FILE)? else {
            return Ok(Self::default());
        };
        let path = directory.file(SETTINGS_FILE);
        let malformed = |cause: String| CommandError::Other(format!("{}: {cause}", path.display()));
        let mut file: Self = toml::from_str(&text).map_err(|cause| {
            let before = cause.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            let message = cause.message().replace('\n', ", ");
            let key = text
                .lines()
                .nth(line - 1)
                .and_then(|line| line.split_once('='));
            match key.filter(|_| message.starts_with("invalid type")) {
                Some((key, _)) => malformed(format!("line {line}: {}: {message}", key.trim())),
                None => malformed(format!("line {line}: {message}")),
            }
        })?;
        if file.retries.is_some_and(|retries| retries > RETRIES_MAX) {
            return Err(malformed(format!("retries must be at most {RETRIES_MAX}")));
        }
        for named in [&mut file.ca_cert, &mut file.cert, &mut file.key]
            .into_iter()
            .flatten()
        {
            *named = directory.file("").join(&*named);
        }
        Ok(file)
    }
}

/// The session that `login` stores for later runs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct StoredSession {
    /// Identifies the login. Renewed tokens belong to the same login. `None` in files of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) login_id: Option<u64>,
    pub(crate) server: String,
    /// The files with the CAs trusted for this server.
    pub(crate) ca_cert: Vec<PathBuf>,
    /// The files with the client certificate and its private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cert: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<PathBuf>,
    /// `None` if only the client certificate identifies the caller.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "expose")]
    pub(crate) access_token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "expose")]
    pub(crate) refresh_token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) issued_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<String>,
    #[serde(default)]
    pub(crate) is_of_client: bool,
}

/// Serializes a secret, for the session file.
fn expose<'a, S: Serializer>(
    secret: impl IntoIterator<Item = &'a Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut secret = secret.into_iter().map(Secret::expose);
    secret.next().serialize(serializer)
}

impl StoredSession {
    /// Reads the session, or returns `None` if no session is stored.
    pub(crate) fn read(directory: &Directory) -> Result<Option<Self>, CommandError> {
        let malformed = || CommandError::SessionMalformed(directory.file(SESSION_FILE));
        match directory.read(SESSION_FILE) {
            Ok(Some(text)) => keywright_json::read(&text).map_err(|_| malformed()),
            Ok(None) => Ok(None),
            Err(failure) if failure.is_not_text() => Err(malformed()),
            Err(failure) => Err(failure.into()),
        }
    }

    pub(crate) fn tokens(&self) -> Option<Tokens> {
        Some(Tokens {
            access_token: self.access_token.clone()?,
            refresh_token: self.refresh_token.clone(),
            issued_by: self.issued_by.clone(),
        })
    }

    pub(crate) fn with_tokens(self, tokens: Tokens) -> Self {
        Self {
            access_token: Some(tokens.access_token),
            refresh_token: tokens.refresh_token,
            issued_by: tokens.issued_by,
            ..self
        }
    }

    /// Returns the client and the resource for renewing and revoking the tokens.
    pub(crate) fn login_options(&self) -> LoginOptions {
        LoginOptions {
            client_id: self.client_id.clone(),
            resource: self.resource.clone(),
            is_of_client: self.is_of_client,
            ..LoginOptions::default()
        }
    }

    /// Returns the path of the session file if users other than its owner have access to it.
    pub(crate) fn open_to_others(directory: &Directory) -> Option<PathBuf> {
        let file = directory.file(SESSION_FILE);
        let permissions = fs::metadata(&file).ok()?.permissions();
        (permissions.mode() & OTHERS != 0).then_some(file)
    }

    /// Writes the session, and replaces an existing one.
    pub(crate) fn write(&self, directory: &Directory) -> Result<(), FileAccessError> {
        directory.create()?;
        let _lock = directory.lock();
        self.save(directory)
    }

    /// Waits until no other run renews this login, and takes over the tokens that others have stored.
    pub(crate) fn begin_renewal(&mut self, directory: &Directory) -> StoredLogin {
        let lock = directory.lock();
        let stored = Self::read(directory).ok().flatten();
        if let Some(stored) = stored
            && stored.login_id.is_some()
            && stored.login_id == self.login_id
        {
            *self = stored;
        }
        StoredLogin {
            tokens: self.tokens(),
            _lock: lock,
        }
    }

    /// Stores new tokens of this session, during a renewal. Does nothing if another run has changed the stored login in the meantime.
    pub(crate) fn update_tokens(
        &mut self,
        tokens: &Tokens,
        directory: &Directory,
    ) -> Result<(), CommandError> {
        let is_current = Self::read(directory)?.is_some_and(|stored| stored.is_same_login(self));
        if !is_current {
            return Ok(());
        }
        *self = self.clone().with_tokens(tokens.clone());
        Ok(self.save(directory)?)
    }

    fn is_same_login(&self, other: &Self) -> bool {
        (&self.server, &self.access_token, &self.refresh_token)
            == (&other.server, &other.access_token, &other.refresh_token)
    }

    fn save(&self, directory: &Directory) -> Result<(), FileAccessError> {
        let file = directory.file(SESSION_FILE);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|cause| FileAccessError::new(&file, "write", cause.into()))?;
        write_whole(&file, &Zeroizing::new(text), Readers::Owner)
    }

    /// Deletes the session, unless another run has logged in again in the meantime.
    pub(crate) fn delete_unless_replaced(
        &self,
        directory: &Directory,
    ) -> Result<(), FileAccessError> {
        let _lock = directory.lock();
        let stored = Self::read(directory).ok().flatten();
        if stored
            .is_none_or(|stored| (&stored.server, stored.login_id) == (&self.server, self.login_id))
        {
            return directory.delete(SESSION_FILE);
        }
        Ok(())
    }

    /// Deletes the stored session, if any.
    pub(crate) fn delete(directory: &Directory) -> Result<(), FileAccessError> {
        let _lock = directory.lock();
        directory.delete(SESSION_FILE)
    }
}

pub(super) const SETTINGS_FILE: &str = "settings.toml";

const SESSION_FILE: &str = "session.json";

/// The empty file that is locked.
const LOCK_FILE: &str = "session.lock";

/// The largest file in the folder, in bytes. Tokens are shorter than a request header.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The pause between two attempts to lock the session, and the maximum number of attempts. A renewal holds the lock while it waits
/// for the identity provider.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);
const LOCK_ATTEMPTS_MAX: u32 = 1_500;

/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_users_can_not_lock_the_session() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory(folder.path().to_owned());
        let _lock = directory.lock().unwrap();
        let file = fs::metadata(directory.file(LOCK_FILE)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        // If the folder were locked, so could others with access to it.
        File::open(folder.path()).unwrap().try_lock().unwrap();
    }

    #[test]
    fn new_tokens_are_stored_only_for_their_own_login() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory(folder.path().to_owned());
        let tokens = |access: &str, refresh: Option<&str>| {
            let secret = |text: &str| Secret::new(text.to_owned());
            Tokens::new(secret(access), refresh.map(secret))
        };
        let session = |server: &str, tokens| {
            let session = StoredSession {
                server: server.to_owned(),
                ..StoredSession::default()
            };
            session.with_tokens(tokens)
        };
        let one = || session("https://one", tokens("a", Some("r")));
        for (stored, is_stored) in [
            (Some(one()), true),
            (Some(session("https://two", tokens("a", Some("r")))), false),
            (Some(session("https://one", tokens("b", Some("r")))), false),
            (Some(session("https://one", tokens("a", None))), false),
            (None, false),
        ] {
            StoredSession::delete(&directory).unwrap();
            if let Some(stored) = &stored {
                stored.write(&directory).unwrap();
            }
            let mut renewed = one();
            // Tokens may be renewed twice in one run.
            for access in ["new", "newer"] {
                let fresh = tokens(access, Some("r"));
                renewed.update_tokens(&fresh, &directory).unwrap();
                let read = StoredSession::read(&directory).unwrap();
                assert_eq!(read.is_some(), stored.is_some());
                let tokens = read.and_then(|read| read.tokens());
                let is_new = tokens.is_some_and(|tokens| tokens.access_token == fresh.access_token);
                assert_eq!(is_new, is_stored, "{stored:?}");
            }
        }
    }
}
