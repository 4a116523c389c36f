//! Combines settings from arguments, environment, session and file, in this order of precedence.

use std::{fs, path::PathBuf};

use clap::ValueEnum;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::{Directory, FileFailure, StoredSession, TokenSource, environment::Environment, token};
use crate::{Client, ClientBuilder, Error, Grant, LoginOptions, Secret, Tokens, client::address};

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Table.
    Table,
}

/// `settings.toml`. Relative paths are relative to its folder.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsFile {
    /// The server's address.
    pub server: Option<String>,
    /// The PEM file with the CAs to trust instead of the system's.
    pub ca_cert: Option<PathBuf>,
    /// The file with the client certificate, PEM.
    pub cert: Option<PathBuf>,
    /// The file with its private key, PEM.
    pub key: Option<PathBuf>,
    /// The output format.
    pub output: Option<OutputFormat>,
    /// The maximum number of retries while the server is unavailable, 0 to 20.
    pub retries: Option<u32>,
    /// The public client through which users log in.
    pub client_id: Option<String>,
    /// The scopes that a login requests, separated by spaces.
    pub scope: Option<String>,
    /// The audience that a login requests.
    pub audience: Option<String>,
    /// The resource that a login requests.
    pub resource: Option<String>,
}

/// The settings from arguments.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The server's address.
    pub server: Option<String>,
    /// The PEM files with the CAs to trust instead of the system's.
    pub ca_cert: Vec<PathBuf>,
    /// The file with the client certificate, PEM.
    pub cert: Option<PathBuf>,
    /// The file with its private key, PEM.
    pub key: Option<PathBuf>,
    /// The file with an access token.
    pub token_file: Option<PathBuf>,
    /// The output format.
    pub output: Option<OutputFormat>,
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's address.
    pub server: Option<String>,
    /// The files with the trusted CAs; if empty, the system's CAs are trusted.
    pub ca_cert: Vec<PathBuf>,
    /// The files with the client certificate and its private key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// Whether the client certificate comes from the session.
    pub is_certificate_of_session: bool,
    /// The output format, if set.
    pub output: Option<OutputFormat>,
    /// The maximum number of retries while the server is unavailable, if set.
    pub retries_max: Option<u32>,
    /// The grant from the environment, with which each run logs in.
    pub grant: Option<Grant>,
    /// The parameters of a login, from the environment and the file.
    pub login_options: LoginOptions,
    /// The tokens of the token file, of the environment, or of the session if it is for this server.
    pub tokens: Option<Tokens>,
    /// Where the token comes from, if it is not a login's.
    pub token_source: Option<TokenSource>,
    /// The session, if it is for this server.
    pub session: Option<StoredSession>,
    /// The path of the session file, if it is malformed. A login replaces it, and a logout deletes it.
    pub malformed_session: Option<PathBuf>,
    /// The folder with the session.
    pub directory: Directory,
}

/// Why settings are refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsRefused {
    /// A file can't be read.
    #[error(transparent)]
    File(#[from] FileFailure),
    /// The session file is malformed.
    #[error("{} is malformed; log in again", .0.display())]
    SessionMalformed(PathBuf),
    /// The settings file is malformed.
    #[error("{}: {cause}", path.display())]
    FileMalformed {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// A variable is not UTF-8.
    #[error("environment variable {0} is not UTF-8")]
    NotUnicode(String),
    /// A variable has the client's prefix, but is unknown.
    #[error("unknown environment variable {0}")]
    VariableUnknown(String),
    /// A variable has an invalid value.
    #[error("environment variable {name} must be {expected}")]
    VariableMalformed {
        /// The name of the variable.
        name: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// A file or a variable does not contain an access token.
    #[error(
        "{0} must contain an access token: 1 to {max} bytes of visible ASCII on one line",
        max = token::BYTES_MAX
    )]
    TokenMalformed(String),
    /// `retries` is too large.
    #[error("retries must be at most {RETRIES_MAX}")]
    TooManyRetries,
    /// The first setting is missing, which the second one requires.
    #[error("missing {0}, which {1} requires")]
    Incomplete(&'static str, &'static str),
    /// The platform has no configuration folder.
    #[error("no settings folder; set KEYWRIGHT_CLIENT_DIRECTORY")]
    NoDirectory,
    /// No server is set.
    #[error("no server; log in, or set --server or KEYWRIGHT_CLIENT_SERVER")]
    NoServer,
}

impl Settings {
    /// Combines arguments, environment, session and file.
    ///
    /// # Errors
    /// When one of them is malformed or can't be read.
    pub fn gather(arguments: Arguments) -> Result<Self, SettingsRefused> {
        let directory = Directory::of_environment().ok_or(SettingsRefused::NoDirectory)?;
        let environment = Environment::read(std::env::vars_os())?;
        Self::of(arguments, environment, directory)
    }

    fn of(
        arguments: Arguments,
        environment: Environment,
        directory: Directory,
    ) -> Result<Self, SettingsRefused> {
        let file = SettingsFile::read(&directory)?;
        let (stored, malformed_session) = match StoredSession::read(&directory) {
            Ok(stored) => (stored, None),
            Err(SettingsRefused::SessionMalformed(path)) => (None, Some(path)),
            Err(refused) => return Err(refused),
        };
        let login_options = login_options(&environment, &file);
        let named = arguments.server.or(environment.server);
        // Normalized as in the session. A malformed address is reported when it is used.
        let named = named.map(|server| address(&server).unwrap_or(server));
        // A session is only valid for its own server.
        let session =
            stored.filter(|stored| named.as_ref().is_none_or(|named| *named == stored.server));
        let of_session = session.as_ref();

        let ca_cert = first_of([
            arguments.ca_cert,
            environment.ca_cert.into_iter().collect(),
            of_session
                .map(|session| session.ca_cert.clone())
                .unwrap_or_default(),
            file.ca_cert.into_iter().collect(),
        ]);
        let named_certificate =
            pair((arguments.cert, arguments.key), ("--cert", "--key"))?.or(pair(
                (environment.cert, environment.key),
                ("KEYWRIGHT_CLIENT_CERT", "KEYWRIGHT_CLIENT_KEY"),
            )?);
        let of_file = pair((file.cert, file.key), ("cert", "key"))?;
        let certificate_of_session =
            of_session.and_then(|session| session.client_certificate.clone());
        let grant = client_of(environment.client_id, environment.client_secret)?;
        // Arguments override variables, so a token file overrides a client in the environment.
        let grant = grant.filter(|_| arguments.token_file.is_none());
        let token = token::gather(arguments.token_file.as_deref(), environment.token.as_ref())?;
        let (token, token_source) = token.unzip();
        let tokens = match (token, &grant) {
            (Some(token), _) => Some(Tokens::new(token, None)),
            (None, Some(_)) => None,
            (None, None) => of_session.and_then(|session| session.tokens.clone()),
        };
        Ok(Self {
            server: named
                .or(of_session.map(|session| session.server.clone()))
                .or(file.server),
            ca_cert,
            is_certificate_of_session: named_certificate.is_none()
                && certificate_of_session.is_some(),
            client_certificate: named_certificate.or(certificate_of_session).or(of_file),
            output: arguments
                .output
                .or(output(environment.output.as_deref())?)
                .or(file.output),
            retries_max: retries(environment.retries.as_deref())?.or(file.retries),
            grant,
            login_options,
            tokens,
            token_source,
            session,
            malformed_session,
            directory,
        })
    }

    /// Returns a configured client without an identity other than the client certificate.
    ///
    /// # Errors
    /// When no server is set, or a file can't be read.
    pub fn anonymous_client(&self) -> Result<ClientBuilder, SettingsRefused> {
        let server = self.server.as_deref().ok_or(SettingsRefused::NoServer)?;
        let mut builder = Client::builder(server);
        for path in &self.ca_cert {
            builder = builder.trusting_only(read(path)?.to_vec());
        }
        if let Some((cert, key)) = &self.client_certificate {
            builder = builder.client_certificate(&read(cert)?, &read(key)?);
        }
        if let Some(retries_max) = self.retries_max {
            builder = builder.retries_max(retries_max);
        }
        Ok(builder)
    }

    /// Whether the caller has an identity: a grant, tokens or a client certificate.
    #[must_use]
    pub fn has_identity(&self) -> bool {
        self.grant.is_some() || self.tokens.is_some() || self.client_certificate.is_some()
    }
}

impl SettingsFile {
    fn read(directory: &Directory) -> Result<Self, SettingsRefused> {
        let Some(text) = directory.read(FILE)? else {
            return Ok(Self::default());
        };
        let path = directory.file(FILE);
        let malformed = |cause: toml::de::Error| SettingsRefused::FileMalformed {
            path: path.clone(),
            cause: cause.message().to_owned(),
        };
        let mut file: Self = toml::from_str(&text).map_err(malformed)?;
        if file.retries.is_some_and(|retries| retries > RETRIES_MAX) {
            return Err(SettingsRefused::TooManyRetries);
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

impl From<SettingsRefused> for Error {
    fn from(refused: SettingsRefused) -> Self {
        Self::Configuration(refused.to_string())
    }
}

fn first_of<const COUNT: usize>(lists: [Vec<PathBuf>; COUNT]) -> Vec<PathBuf> {
    let mut lists = lists.into_iter();
    lists.find(|list| !list.is_empty()).unwrap_or_default()
}

/// Returns both settings, or `None` if neither is set.
fn pair<One, Other>(
    both: (Option<One>, Option<Other>),
    names: (&'static str, &'static str),
) -> Result<Option<(One, Other)>, SettingsRefused> {
    match both {
        (Some(one), Some(other)) => Ok(Some((one, other))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(SettingsRefused::Incomplete(names.1, names.0)),
        (None, Some(_)) => Err(SettingsRefused::Incomplete(names.0, names.1)),
    }
}

fn output(variable: Option<&str>) -> Result<Option<OutputFormat>, SettingsRefused> {
    let malformed = |_| SettingsRefused::VariableMalformed {
        name: "KEYWRIGHT_CLIENT_OUTPUT",
        expected: "json, yaml or table",
    };
    variable
        .map(|text| OutputFormat::from_str(text, true).map_err(malformed))
        .transpose()
}

fn retries(variable: Option<&str>) -> Result<Option<u32>, SettingsRefused> {
    let malformed = || SettingsRefused::VariableMalformed {
        name: "KEYWRIGHT_CLIENT_RETRIES",
        expected: "a number from 0 to 20",
    };
    variable
        .map(|text| {
            let count = text.parse().ok();
            count
                .filter(|count| *count <= RETRIES_MAX)
                .ok_or_else(malformed)
        })
        .transpose()
}

fn read(path: &PathBuf) -> Result<Zeroizing<Vec<u8>>, FileFailure> {
    fs::read(path)
        .map(Zeroizing::new)
        .map_err(|cause| FileFailure::new(path, "read", cause))
}

/// Returns the grant of the client that the environment names.
fn client_of(id: Option<String>, secret: Option<Secret>) -> Result<Option<Grant>, SettingsRefused> {
    let names = ("KEYWRIGHT_CLIENT_ID", "KEYWRIGHT_CLIENT_SECRET");
    let client = pair((id, secret), names)?;
    let grant = client.map(|(client_id, client_secret)| Grant::ClientCredentials {
        client_id,
        client_secret,
    });
    Ok(grant)
}

/// Returns the parameters of a login.
fn login_options(environment: &Environment, file: &SettingsFile) -> LoginOptions {
    let first = |one: &Option<String>, other: &Option<String>| one.clone().or(other.clone());
    LoginOptions {
        client_id: file.client_id.clone(),
        scope: first(&environment.scope, &file.scope),
        audience: first(&environment.audience, &file.audience),
        resource: first(&environment.resource, &file.resource),
        is_of_client: false,
    }
}

const FILE: &str = "settings.toml";

/// The largest configurable number of retries.
const RETRIES_MAX: u32 = 20;

#[cfg(test)]
mod tests;
