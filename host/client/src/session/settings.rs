//! What a run of the command line is configured by: arguments, environment, session and file, in this order.

use std::{fs, path::PathBuf};

use clap::ValueEnum;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::{Directory, FileFailure, StoredSession, environment::Environment, token};
use crate::{Client, ClientBuilder, Error, Grant, LoginOptions, Secret, Tokens, client::address};

/// How what was asked for is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// JSON, which is the default where standard output is no terminal.
    Json,
    /// YAML.
    Yaml,
    /// For people, which is the default on a terminal.
    Table,
}

/// `settings.toml`. Relative paths are relative to its folder.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsFile {
    /// The server's address.
    pub server: Option<String>,
    /// The file with the authorities that alone are trusted, PEM.
    pub ca_cert: Option<PathBuf>,
    /// The file with the client certificate, PEM.
    pub cert: Option<PathBuf>,
    /// The file with its private key, PEM.
    pub key: Option<PathBuf>,
    /// How what was asked for is written.
    pub output: Option<OutputFormat>,
    /// How often a request is sent again while the server is not available, 0 to 20.
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

/// What the arguments say.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// The server's address.
    pub server: Option<String>,
    /// The files with the authorities that alone are trusted, PEM.
    pub ca_cert: Vec<PathBuf>,
    /// The file with the client certificate, PEM.
    pub cert: Option<PathBuf>,
    /// The file with its private key, PEM.
    pub key: Option<PathBuf>,
    /// The file with an access token.
    pub token_file: Option<PathBuf>,
    /// How what was asked for is written.
    pub output: Option<OutputFormat>,
}

/// What a run is configured by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's address.
    pub server: Option<String>,
    /// The files with the authorities that alone are trusted; the system's where there are none.
    pub ca_cert: Vec<PathBuf>,
    /// The files with the client certificate and its private key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// Whether it is the session that names these two files, and nothing else does.
    pub is_certificate_of_session: bool,
    /// How what was asked for is written, if it was said.
    pub output: Option<OutputFormat>,
    /// How often a request is sent again while the server is not available, if it was said.
    pub retries_max: Option<u32>,
    /// What each run logs in by, of the environment.
    pub grant: Option<Grant>,
    /// The parameters of a login, of the environment and the file.
    pub login_options: LoginOptions,
    /// The tokens that are there: of the token file, of the environment, or of the session when it is for this server.
    pub tokens: Option<Tokens>,
    /// Whether the tokens are of a token file.
    pub is_token_of_file: bool,
    /// The session, when it is for this server.
    pub session: Option<StoredSession>,
    /// The session's file, when it holds none. Who logs in replaces it, and who logs out deletes it.
    pub malformed_session: Option<PathBuf>,
    /// Where the session is kept.
    pub directory: Directory,
}

/// The settings can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsRefused {
    /// A file can't be read.
    #[error(transparent)]
    File(#[from] FileFailure),
    /// The session is none.
    #[error("{} is not what `keywright login` writes; log in again", .0.display())]
    SessionMalformed(PathBuf),
    /// The settings are none.
    #[error("{}: {cause}", path.display())]
    FileMalformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// A variable is not UTF-8.
    #[error("the variable {0} is not UTF-8")]
    NotUnicode(String),
    /// A variable begins as the client's do, and is none of them.
    #[error("the variable {0} is none of the client's")]
    VariableUnknown(String),
    /// A variable holds what it can't.
    #[error("the variable {name} must be {expected}")]
    VariableMalformed {
        /// Which one.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A file or a variable should hold an access token and does not.
    #[error(
        "{0} must hold an access token: 1 to {max} bytes of visible ASCII on one line",
        max = token::BYTES_MAX
    )]
    TokenMalformed(String),
    /// More retries than there may be.
    #[error("retries: at most {RETRIES_MAX}")]
    TooManyRetries,
    /// One of the two without the other.
    #[error("{0} is needed besides {1}")]
    Incomplete(&'static str, &'static str),
    /// There is no home folder.
    #[error("there is no folder for the settings: set KEYWRIGHT_CLIENT_DIRECTORY")]
    NoDirectory,
    /// There is no server.
    #[error("there is no server: log in, or name it by --server or KEYWRIGHT_CLIENT_SERVER")]
    NoServer,
}

impl Settings {
    /// Gathers what arguments, environment, session and file say.
    ///
    /// # Errors
    /// When one of them can't be used.
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
        // In the form that the session has it. What is no address is told when it is to be used.
        let named = named.map(|server| address(&server).unwrap_or(server));
        // A session is good for its own server and for no other.
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
        let is_token_of_file = arguments.token_file.is_some();
        let grant = client_of(environment.client_id, environment.client_secret)?;
        // An argument goes before all variables, and so a token file before a client of the environment.
        let grant = grant.filter(|_| !is_token_of_file);
        let token = token::gather(arguments.token_file.as_deref(), environment.token.as_ref())?;
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
            is_token_of_file,
            session,
            malformed_session,
            directory,
        })
    }

    /// A client as it is configured, without what says who the caller is but for the client certificate.
    ///
    /// # Errors
    /// When there is no server, or a file can't be read.
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

    /// Whether anything says who the caller is.
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

/// Both or none.
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
    }
}

const FILE: &str = "settings.toml";

/// How often a request may be sent again at most.
const RETRIES_MAX: u32 = 20;

#[cfg(test)]
mod tests;
