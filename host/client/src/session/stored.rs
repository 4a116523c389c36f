//! The session: what `login` leaves for the runs that follow.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{Directory, FileFailure, SettingsRefused};
use crate::{LoginOptions, Secret, Tokens};

/// What `login` leaves for the runs that follow.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// The server's address.
    pub server: String,
    /// The files with the authorities that are trusted for it.
    pub ca_cert: Vec<PathBuf>,
    /// The files with the client certificate and its private key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// The tokens, unless it is the client certificate alone that says who the caller is.
    pub tokens: Option<Tokens>,
    /// The client and the resource of the tokens, with which they are renewed.
    pub login_options: LoginOptions,
}

impl StoredSession {
    /// Reads the session, if there is one.
    ///
    /// # Errors
    /// When the file can't be read or is none of ours.
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

    /// The file, where a session is and others than its owner may read it.
    #[must_use]
    pub fn open_to_others(directory: &Directory) -> Option<PathBuf> {
        let is_open = directory.is_open_to_others(FILE);
        is_open.then(|| directory.file(FILE))
    }

    /// Writes the session in the place of another one.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, directory: &Directory) -> Result<(), FileFailure> {
        directory.make()?;
        let _turn = directory.turn();
        self.put(directory)
    }

    /// Keeps new tokens of this session, when it is the one that is there. Another run may have logged in elsewhere
    /// meanwhile, or have ended the login: then nothing is changed.
    ///
    /// # Errors
    /// When the file can't be read or written.
    pub fn keep(&mut self, tokens: &Tokens, directory: &Directory) -> Result<(), SettingsRefused> {
        let _turn = directory.turn();
        let is_there = Self::read(directory)?.is_some_and(|there| there.is_same_login(self));
        if !is_there {
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
        };
        let text = Zeroizing::new(serde_json::to_vec_pretty(&stored).unwrap_or_default());
        directory.write(FILE, &text)
    }

    /// Deletes the session, unless another run has logged in at another server meanwhile.
    ///
    /// # Errors
    /// When the file can't be deleted.
    pub fn end(&self, directory: &Directory) -> Result<(), FileFailure> {
        let _turn = directory.turn();
        let there = Self::read(directory).ok().flatten();
        if there.is_none_or(|there| there.server == self.server) {
            directory.delete(FILE)?;
        }
        Ok(())
    }

    /// Deletes whatever session there is. False when there is none.
    ///
    /// # Errors
    /// When the file can't be deleted.
    pub fn delete(directory: &Directory) -> Result<bool, FileFailure> {
        let _turn = directory.turn();
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
}

const FILE: &str = "session.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_as_it_was_written() {
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
    fn what_is_no_session_is_refused_without_being_repeated() {
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
    fn new_tokens_are_kept_for_the_login_that_they_are_of_and_no_other() {
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
        for (there, is_kept) in [
            (Some(one()), true),
            (Some(session("https://two", tokens("a", Some("r")))), false),
            (Some(session("https://one", tokens("b", Some("r")))), false),
            (Some(session("https://one", tokens("a", None))), false),
            (None, false),
        ] {
            StoredSession::delete(&directory).unwrap();
            if let Some(there) = &there {
                there.write(&directory).unwrap();
            }
            let mut renewed = one();
            // Once more in the same run, after the first time.
            for access in ["new", "newer"] {
                let fresh = tokens(access, Some("r"));
                renewed.keep(&fresh, &directory).unwrap();
                let kept = StoredSession::read(&directory).unwrap();
                assert_eq!(kept.is_some(), there.is_some());
                let kept = kept.and_then(|kept| kept.tokens);
                let is_new = kept.is_some_and(|kept| kept.access_token == fresh.access_token);
                assert_eq!(is_new, is_kept, "{there:?}");
            }
        }
    }
}
