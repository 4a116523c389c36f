//! Combines settings from arguments, environment, session and file, in this order of precedence.

use std::{fs, path::PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use zeroize::Zeroizing;

use super::{
    RETRIES_MAX, SettingsError,
    environment::{Environment, TokenSource, access_token},
    files::{Directory, OutputFormat, SettingsFile, StoredSession},
};
use crate::{
    Client, ClientBuilder, Grant, LoginOptions, Secret, Tokens, client::address,
    new_file::SessionFileError,
};

// The settings from arguments, which all commands have.
#[derive(Args, Clone, Debug, Default)]
#[expect(
    missing_docs,
    reason = "a doc comment would replace the help of the command"
)]
pub struct Arguments {
    /// Server address, such as `https://keywright.example:8844`.
    #[arg(long, global = true, value_name = "ADDRESS", help_heading = HEADING, value_hint = ValueHint::Url)]
    pub server: Option<String>,
    /// PEM file with the CAs to trust instead of the system's; may be repeated.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    pub ca_cert: Vec<PathBuf>,
    /// PEM file with the client certificate.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    pub cert: Option<PathBuf>,
    /// PEM file with the private key of the client certificate.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// File with an access token, read by each command. Overrides the environment and the login.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// Output format. Default: a table on a terminal, JSON otherwise.
    #[arg(long, short, global = true, value_enum, value_name = "FORMAT", help_heading = HEADING)]
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
    /// The source of the token, or `None` if a login issued it.
    pub token_source: Option<TokenSource>,
    /// The session, if it is for this server.
    pub session: Option<StoredSession>,
    /// The path of the session file, if it is malformed. A login replaces it, and a logout deletes it.
    pub malformed_session: Option<PathBuf>,
    /// The folder with the session.
    pub directory: Directory,
}

impl Settings {
    /// Combines arguments, environment, session and file.
    pub fn gather(arguments: Arguments) -> Result<Self, SettingsError> {
        let directory = Directory::of_environment().ok_or(SettingsError::NoDirectory)?;
        let environment = Environment::read(std::env::vars_os())?;
        Self::of(arguments, environment, directory)
    }

    fn of(
        arguments: Arguments,
        environment: Environment,
        directory: Directory,
    ) -> Result<Self, SettingsError> {
        let file = SettingsFile::read(&directory)?;
        let (stored, malformed_session) = match StoredSession::read(&directory) {
            Ok(stored) => (stored, None),
            Err(SettingsError::SessionMalformed(path)) => (None, Some(path)),
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
        let token = access_token(arguments.token_file.as_deref(), environment.token.as_ref())?;
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
    pub fn anonymous_client(&self) -> Result<ClientBuilder, SettingsError> {
        let server = self.server.as_deref().ok_or(SettingsError::NoServer)?;
        let mut builder = Client::builder(server);
        for path in &self.ca_cert {
            builder = builder.trusting_only(read_certificates(path)?.to_vec());
        }
        if let Some((cert, key)) = &self.client_certificate {
            builder = builder.client_certificate(&read_certificates(cert)?, &read_key(key)?);
        }
        if let Some(retries_max) = self.retries_max {
            builder = builder.retries_max(retries_max);
        }
        Ok(builder)
    }

    /// Returns whether the caller has an identity: a grant, tokens or a client certificate.
    #[must_use]
    pub fn has_identity(&self) -> bool {
        self.grant.is_some() || self.tokens.is_some() || self.client_certificate.is_some()
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
) -> Result<Option<(One, Other)>, SettingsError> {
    match both {
        (Some(one), Some(other)) => Ok(Some((one, other))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(SettingsError::Incomplete(names.1, names.0)),
        (None, Some(_)) => Err(SettingsError::Incomplete(names.0, names.1)),
    }
}

fn output(variable: Option<&str>) -> Result<Option<OutputFormat>, SettingsError> {
    let malformed = |_| SettingsError::VariableMalformed {
        name: "KEYWRIGHT_CLIENT_OUTPUT",
        expected: "json, yaml or table",
    };
    variable
        .map(|text| OutputFormat::from_str(text, true).map_err(malformed))
        .transpose()
}

fn retries(variable: Option<&str>) -> Result<Option<u32>, SettingsError> {
    let malformed = || SettingsError::VariableMalformed {
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

fn read(path: &PathBuf) -> Result<Zeroizing<Vec<u8>>, SessionFileError> {
    fs::read(path)
        .map(Zeroizing::new)
        .map_err(|cause| SessionFileError::new(path, "read", cause))
}

fn read_certificates(path: &PathBuf) -> Result<Zeroizing<Vec<u8>>, SettingsError> {
    let pem = read(path)?;
    if !contains(&pem, "-----BEGIN CERTIFICATE-----") {
        let (file, kind) = (path.clone(), "certificate");
        return Err(SettingsError::PemMissing { file, kind });
    }
    Ok(pem)
}

fn read_key(path: &PathBuf) -> Result<Zeroizing<Vec<u8>>, SettingsError> {
    let pem = read(path)?;
    let marks = ["BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED"];
    if marks.iter().any(|mark| contains(&pem, mark)) {
        return Err(SettingsError::KeyEncrypted(path.clone()));
    }
    if !contains(&pem, "PRIVATE KEY-----") {
        let (file, kind) = (path.clone(), "private key");
        return Err(SettingsError::PemMissing { file, kind });
    }
    Ok(pem)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    let mut windows = bytes.windows(text.len());
    windows.any(|window| window == text.as_bytes())
}

/// Returns the grant of the client that the environment names.
fn client_of(id: Option<String>, secret: Option<Secret>) -> Result<Option<Grant>, SettingsError> {
    let names = ("KEYWRIGHT_CLIENT_ID", "KEYWRIGHT_CLIENT_SECRET");
    let client = pair((id, secret), names)?;
    let grant = client.map(|(client_id, client_secret)| Grant::ClientCredentials {
        client_id,
        client_secret,
    });
    Ok(grant)
}

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

const HEADING: &str = "Global options";

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// Returns a folder with these settings and a session for this server.
    fn folder(settings: &str, session: Option<&str>) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("settings.toml"), settings).unwrap();
        if let Some(server) = session {
            let session = StoredSession {
                server: server.to_owned(),
                ca_cert: vec!["/session.pem".into()],
                client_certificate: None,
                tokens: Some(Tokens::new(Secret::new("token".to_owned()), None)),
                login_options: LoginOptions::default(),
            };
            session
                .write(&Directory::at(folder.path().to_owned()))
                .unwrap();
        }
        folder
    }

    fn of(
        folder: &TempDir,
        arguments: Arguments,
        environment: Environment,
    ) -> Result<Settings, SettingsError> {
        Settings::of(
            arguments,
            environment,
            Directory::at(folder.path().to_owned()),
        )
    }

    fn named(server: &str) -> Arguments {
        Arguments {
            server: Some(server.to_owned()),
            ..Arguments::default()
        }
    }

    #[test]
    fn sessions_match_every_spelling_of_the_server_address() {
        let folder = folder("", Some("https://session"));
        for (server, is_found) in [
            ("https://session", true),
            (" https://session/ ", true),
            ("https://Session:443", true),
            ("HTTPS://session", true),
            ("https://session:8844", false),
            ("https://session/path", false),
            ("https://other", false),
            ("session", false),
        ] {
            let settings = of(&folder, named(server), Environment::default()).unwrap();
            assert_eq!(settings.session.is_some(), is_found, "{server}");
            assert_eq!(settings.tokens.is_some(), is_found, "{server}");
        }
    }

    #[test]
    fn arguments_override_variables_then_session_then_file() {
        let settings = "server = \"https://file\"\nca_cert = \"file.pem\"\noutput = \"yaml\"";
        let variables = || Environment {
            server: Some("https://variable".to_owned()),
            output: Some("table".to_owned()),
            ..Environment::default()
        };
        let with_session = folder(settings, Some("https://session"));
        let without_session = folder(settings, None);
        let cases = [
            (
                &with_session,
                named("https://argument"),
                variables(),
                "https://argument",
            ),
            (
                &with_session,
                Arguments::default(),
                variables(),
                "https://variable",
            ),
            (
                &with_session,
                Arguments::default(),
                Environment::default(),
                "https://session",
            ),
            (
                &without_session,
                Arguments::default(),
                Environment::default(),
                "https://file",
            ),
        ];
        for (folder, arguments, environment, server) in cases {
            let settings = of(folder, arguments, environment).unwrap();
            assert_eq!(settings.server.as_deref(), Some(server));
        }
        let settings = of(&with_session, Arguments::default(), Environment::default()).unwrap();
        assert_eq!(settings.ca_cert, [PathBuf::from("/session.pem")]);
        assert_eq!(settings.output, Some(OutputFormat::Yaml));
        let settings = of(&without_session, Arguments::default(), variables()).unwrap();
        assert_eq!(settings.ca_cert, [without_session.path().join("file.pem")]);
        assert_eq!(settings.output, Some(OutputFormat::Table));
    }

    #[test]
    fn a_token_file_overrides_variables_then_the_session() {
        let folder = folder("", Some("https://session"));
        let file = folder.path().join("token");
        fs::write(&file, "of-file\n").unwrap();
        let with_file = || Arguments {
            token_file: Some(file.clone()),
            ..Arguments::default()
        };
        let with_client = || Environment {
            client_id: Some("app".to_owned()),
            client_secret: Some(Secret::new("secret".to_owned())),
            ..Environment::default()
        };
        let with_token = || Environment {
            token: Some(("KEYWRIGHT_TOKEN", Secret::new("of-variable".to_owned()))),
            ..with_client()
        };
        for (arguments, environment, token, has_grant) in [
            (with_file(), with_token(), Some("of-file"), false),
            (
                Arguments::default(),
                with_token(),
                Some("of-variable"),
                true,
            ),
            (Arguments::default(), with_client(), None, true),
            (
                Arguments::default(),
                Environment::default(),
                Some("token"),
                false,
            ),
        ] {
            let settings = of(&folder, arguments, environment).unwrap();
            let found = settings.tokens.map(|tokens| tokens.access_token);
            assert_eq!(found.as_ref().map(Secret::expose), token);
            assert_eq!(settings.grant.is_some(), has_grant);
        }
    }

    #[test]
    fn variables_override_the_file_for_login_parameters() {
        let folder = folder(
            "client_id = \"cli\"\nscope = \"of-file\"\naudience = \"of-file\"\nresource = \"of-file\"",
            None,
        );
        let environment = Environment {
            scope: Some("of-variable".to_owned()),
            ..Environment::default()
        };
        let settings = of(&folder, Arguments::default(), environment).unwrap();
        let options = settings.login_options;
        assert_eq!(options.client_id.as_deref(), Some("cli"));
        assert_eq!(options.scope.as_deref(), Some("of-variable"));
        assert_eq!(options.audience.as_deref(), Some("of-file"));
        assert_eq!(options.resource.as_deref(), Some("of-file"));
    }

    #[test]
    fn the_error_for_an_invalid_setting_names_it_or_its_file() {
        let plain = folder("", None);
        let environment = |set: fn(&mut Environment)| {
            let mut environment = Environment::default();
            set(&mut environment);
            environment
        };
        let cases = [
            (
                environment(|variables| variables.retries = Some("21".to_owned())),
                "KEYWRIGHT_CLIENT_RETRIES",
            ),
            (
                environment(|variables| variables.output = Some("xml".to_owned())),
                "KEYWRIGHT_CLIENT_OUTPUT",
            ),
            (
                environment(|variables| variables.client_id = Some("app".to_owned())),
                "missing KEYWRIGHT_CLIENT_SECRET",
            ),
            (
                environment(|variables| variables.cert = Some("/cert.pem".into())),
                "missing KEYWRIGHT_CLIENT_KEY",
            ),
        ];
        for (environment, words) in cases {
            let refused = of(&plain, Arguments::default(), environment).unwrap_err();
            assert!(refused.to_string().contains(words), "{refused}");
        }
        let twenty = environment(|variables| variables.retries = Some("20".to_owned()));
        let settings = of(&plain, Arguments::default(), twenty).unwrap();
        assert_eq!(settings.retries_max, Some(20));

        for (text, words) in [
            ("servr = \"x\"", "servr"),
            ("retries = 21", "at most 20"),
            ("cert = \"cert.pem\"", "missing key"),
            ("server = ", "settings.toml"),
        ] {
            let folder = folder(text, None);
            let refused = of(&folder, Arguments::default(), Environment::default()).unwrap_err();
            assert!(refused.to_string().contains(words), "{refused}");
        }
    }

    #[test]
    fn a_missing_server_is_reported_with_the_options_to_set_it() {
        let settings = of(
            &folder("", None),
            Arguments::default(),
            Environment::default(),
        )
        .unwrap();
        let refused = settings.anonymous_client().unwrap_err();
        assert!(refused.to_string().contains("--server"));
    }
}
