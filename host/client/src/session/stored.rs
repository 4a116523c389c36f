//! The session that `login` stores for later runs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{Directory, FileFailure, SettingsRefused};
use crate::{LoginOptions, Secret, Tokens};

/// The session that `login` stores for later runs.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// The server's address.
    pub server: String,
    /// The files with the CAs trusted for this server.
    pub ca_cert: Vec<PathBuf>,
    /// The files with the client certificate and its private key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// The tokens; `None` if only the client certificate identifies the caller.
    pub tokens: Option<Tokens>,
    /// The client and the resource for renewing and revoking the tokens.
    pub login_options: LoginOptions,
}

impl StoredSession {
    /// Reads the session. `None` if there is none.
    ///
    /// # Errors
    /// When the file can't be read or is malformed.
    pub fn read(directory: &Directory) -> Result<Option<Self>, SettingsRefused> {
        let malformed = || SettingsRefused::SessionMalformed(directory.file(FILE));
        let text = match directory.read(FILE) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(None),
            Err(failure) if failure.is_not_text() => return Err(malformed()),
            Err(failure) => return Err(failure.into()),
        };
        let stored: Stored = keywright_json::read(&text).map_err(|_| malformed())?;
        let login_options = LoginOptions {
            client_id: stored.client_id,
            resource: stored.resource,
            is_of_client: stored.is_of_client,
            ..LoginOptions::default()
        };
        Ok(Some(Self {
            server: stored.server,
            ca_cert: stored.ca_cert,
            client_certificate: stored.cert.zip(stored.key),
            tokens: stored.access_token.map(|access_token| {
                Tokens::new(
                    Secret::new(access_token),
                    stored.refresh_token.map(Secret::new),
                )
            }),
            login_options,
        }))
    }

    /// Returns the path of the session file if users other than its owner have access to it.
    #[must_use]
    pub fn open_to_others(directory: &Directory) -> Option<PathBuf> {
        let is_open = directory.is_open_to_others(FILE);
        is_open.then(|| directory.file(FILE))
    }

    /// Writes the session, and replaces an existing one.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, directory: &Directory) -> Result<(), FileFailure> {
        directory.create()?;
        let _lock = directory.lock();
        self.put(directory)
    }

    /// Stores new tokens of this session. Does nothing if another run has changed the stored login in the meantime.
    ///
    /// # Errors
    /// When the file can't be read or written.
    pub fn keep(&mut self, tokens: &Tokens, directory: &Directory) -> Result<(), SettingsRefused> {
        let _lock = directory.lock();
        let is_current = Self::read(directory)?.is_some_and(|stored| stored.is_same_login(self));
        if !is_current {
            return Ok(());
        }
        self.tokens = Some(tokens.clone());
        Ok(self.put(directory)?)
    }

    fn is_same_login(&self, other: &Self) -> bool {
        let tokens = |session: &Self| {
            let tokens = session.tokens.clone();
            tokens.map(|tokens| (tokens.access_token, tokens.refresh_token))
        };
        self.server == other.server && tokens(self) == tokens(other)
    }

    fn put(&self, directory: &Directory) -> Result<(), FileFailure> {
        let access_token = self.tokens.as_ref().map(|tokens| &tokens.access_token);
        let refresh_token = self
            .tokens
            .as_ref()
            .and_then(|tokens| tokens.refresh_token.as_ref());
        let text = |secret: &Secret| secret.expose().to_owned();
        let (cert, key) = self.client_certificate.clone().unzip();
        let stored = Stored {
            server: self.server.clone(),
            ca_cert: self.ca_cert.clone(),
            cert,
            key,
            access_token: access_token.map(text),
            refresh_token: refresh_token.map(text),
            client_id: self.login_options.client_id.clone(),
            resource: self.login_options.resource.clone(),
            is_of_client: self.login_options.is_of_client,
        };
        let text = Zeroizing::new(serde_json::to_vec_pretty(&stored).unwrap_or_default());
        directory.write(FILE, &text)
    }

    /// Deletes the session, unless another run has logged in at another server in the meantime.
    ///
    /// # Errors
    /// When the file can't be deleted.
    pub fn end(&self, directory: &Directory) -> Result<(), FileFailure> {
        let _lock = directory.lock();
        let stored = Self::read(directory).ok().flatten();
        if stored.is_none_or(|stored| stored.server == self.server) {
            directory.delete(FILE)?;
        }
        Ok(())
    }

    /// Deletes any session. `false` if there is none.
    ///
    /// # Errors
    /// When the file can't be deleted.
    pub fn delete(directory: &Directory) -> Result<bool, FileFailure> {
        let _lock = directory.lock();
        directory.delete(FILE)
    }
}

#[derive(Deserialize, Serialize)]
struct Stored {
    server: String,
    ca_cert: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cert: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(default)]
    is_of_client: bool,
}

const FILE: &str = "session.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_survive_a_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::at(folder.path().to_owned());
        assert!(StoredSession::read(&directory).unwrap().is_none());
        let tokens = Tokens::new(
            Secret::new("access".to_owned()),
            Some(Secret::new("refresh".to_owned())),
        );
        let login_options = LoginOptions {
            client_id: Some("cli".to_owned()),
            resource: Some("https://api.example".to_owned()),
            is_of_client: true,
            ..LoginOptions::default()
        };
        let session = StoredSession {
            server: "https://a.example".to_owned(),
            ca_cert: vec!["/ca.pem".into()],
            client_certificate: Some(("/cert.pem".into(), "/key.pem".into())),
            tokens: Some(tokens),
            login_options,
        };
        session.write(&directory).unwrap();
        let read = StoredSession::read(&directory).unwrap().unwrap();
        let tokens = read.tokens.unwrap();
        assert_eq!(read.server, session.server);
        assert_eq!(read.ca_cert, session.ca_cert);
        assert_eq!(read.client_certificate, session.client_certificate);
        assert_eq!(read.login_options, session.login_options);
        assert_eq!(tokens.access_token.expose(), "access");
        assert_eq!(tokens.refresh_token.unwrap().expose(), "refresh");
    }

    #[test]
    fn malformed_sessions_are_refused_without_their_content() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::at(folder.path().to_owned());
        for text in [
            &b"hunter2"[..],
            b"{\"server\": \"hunter2\"}",
            b"hunter2\xff",
        ] {
            directory.write(FILE, text).unwrap();
            let refused = StoredSession::read(&directory).unwrap_err();
            assert!(matches!(refused, SettingsRefused::SessionMalformed(_)));
            let refused = refused.to_string();
            assert!(
                refused.contains(FILE) && !refused.contains("hunter2"),
                "{refused}"
            );
        }
    }

    #[test]
    fn new_tokens_are_stored_only_for_their_own_login() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::at(folder.path().to_owned());
        let tokens = |access: &str, refresh: Option<&str>| {
            let secret = |text: &str| Secret::new(text.to_owned());
            Tokens::new(secret(access), refresh.map(secret))
        };
        let session = |server: &str, tokens| StoredSession {
            server: server.to_owned(),
            ca_cert: Vec::new(),
            client_certificate: None,
            tokens: Some(tokens),
            login_options: LoginOptions::default(),
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
                renewed.keep(&fresh, &directory).unwrap();
                let read = StoredSession::read(&directory).unwrap();
                assert_eq!(read.is_some(), stored.is_some());
                let tokens = read.and_then(|read| read.tokens);
                let is_new = tokens.is_some_and(|tokens| tokens.access_token == fresh.access_token);
                assert_eq!(is_new, is_stored, "{stored:?}");
            }
        }
    }
}
