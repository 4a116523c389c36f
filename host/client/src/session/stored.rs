//! The session: what `login` leaves for the runs that follow.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{Directory, FileFailure, SettingsRefused};
use crate::{Secret, Tokens};

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
}

impl StoredSession {
    /// Reads the session, if there is one.
    ///
    /// # Errors
    /// When the file can't be read or is none of ours.
    pub fn read(directory: &Directory) -> Result<Option<Self>, SettingsRefused> {
        let Some(text) = directory.read(FILE)? else {
            return Ok(None);
        };
        let stored: Stored = serde_json::from_str(&text)
            .map_err(|_| SettingsRefused::SessionMalformed(directory.file(FILE)))?;
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
        }))
    }

    /// Writes the session in the place of another one.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, directory: &Directory) -> Result<(), FileFailure> {
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
        };
        let text = Zeroizing::new(serde_json::to_vec_pretty(&stored).unwrap_or_default());
        directory.write(FILE, &text)
    }

    /// Deletes the session. False when there is none.
    ///
    /// # Errors
    /// When the file can't be deleted.
    pub fn delete(directory: &Directory) -> Result<bool, FileFailure> {
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
        let session = StoredSession {
            server: "https://a.example".to_owned(),
            ca_cert: vec!["/ca.pem".into()],
            client_certificate: Some(("/cert.pem".into(), "/key.pem".into())),
            tokens: Some(tokens),
        };
        session.write(&directory).unwrap();
        let read = StoredSession::read(&directory).unwrap().unwrap();
        let tokens = read.tokens.unwrap();
        assert_eq!(read.server, session.server);
        assert_eq!(read.ca_cert, session.ca_cert);
        assert_eq!(read.client_certificate, session.client_certificate);
        assert_eq!(tokens.access_token.expose(), "access");
        assert_eq!(tokens.refresh_token.unwrap().expose(), "refresh");
    }

    #[test]
    fn what_is_no_session_is_refused_without_being_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::at(folder.path().to_owned());
        directory.write(FILE, b"hunter2").unwrap();
        let refused = StoredSession::read(&directory).unwrap_err().to_string();
        assert!(
            refused.contains(FILE) && !refused.contains("hunter2"),
            "{refused}"
        );
    }
}
