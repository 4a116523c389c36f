//! Combines settings from arguments, environment, session and file, in this order of precedence.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum, ValueHint};
use rustls::{
    Error as TlsError, RootCertStore,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use zeroize::Zeroizing;

use super::{
    RETRIES_MAX,
    environment::{Environment, access_token},
    files::{Directory, OutputFormat, SETTINGS_FILE, SettingsFile, StoredSession},
};
use crate::{
    Client, ClientBuilder, Grant, LoginOptions, Tokens, client::address,
    command_error::CommandError, new_file::FileAccessError,
};

// The arguments that all commands have.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// Server address, such as `https://keywright.example:8844`.
    #[arg(long, global = true, value_name = "ADDRESS", help_heading = HEADING, value_hint = ValueHint::Url)]
    pub(crate) server: Option<String>,
    /// PEM file with the CAs to trust instead of the system's; may be repeated.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    pub(crate) ca_cert: Vec<PathBuf>,
    /// PEM file with the client certificate.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file with the private key of the client certificate.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
    /// File with an access token, read by each command. Overrides the environment and the login.
    #[arg(long, global = true, value_name = "FILE", help_heading = HEADING, value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Output format. Default: a table on a terminal, JSON otherwise.
    #[arg(long, short, global = true, value_enum, value_name = "FORMAT", help_heading = HEADING)]
    pub(crate) output: Option<OutputFormat>,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) server: Option<String>,
    /// The files with the trusted CAs; if empty, the system's CAs are trusted.
    pub(crate) ca_cert: Vec<PathBuf>,
    /// The option, variable or other source of `ca_cert`, for messages.
    ca_cert_origin: &'static str,
    /// The files with the client certificate and its private key.
    pub(crate) client_certificate: Option<(PathBuf, PathBuf)>,
    /// The source of `client_certificate`.
    certificate_origin: &'static str,
    pub(crate) output: Option<OutputFormat>,
    /// The maximum number of retries while the server is unavailable.
    pub(crate) retries_max: Option<u32>,
    /// The grant from the environment, with which each run logs in.
    pub(crate) grant: Option<Grant>,
    /// The parameters of a login, from the environment and the file.
    pub(crate) login_options: LoginOptions,
    /// The tokens of the token file, of the environment, or of the session if it is for this server.
    pub(crate) tokens: Option<Tokens>,
    /// The file or variable that contains the token, or `None` if a login issued it.
    pub(crate) token_source: Option<String>,
    /// Whether an argument names a token file.
    pub(crate) has_token_file: bool,
    /// The session, if it is for this server.
    pub(crate) session: Option<StoredSession>,
    /// The path of the session file, if it is malformed. A login replaces it, and a logout deletes it.
    pub(crate) malformed_session: Option<PathBuf>,
    /// The folder with the session.
    pub(crate) directory: Directory,
}

impl Settings {
    /// Combines arguments, environment, session and file.
    pub(crate) fn gather(arguments: Arguments) -> Result<Self, CommandError> {
        let directory = Directory::of_environment().ok_or_else(|| {
            CommandError::Other(
                "the platform has no settings folder; set KEYWRIGHT_CLIENT_DIRECTORY".to_owned(),
            )
        })?;
        let environment = Environment::read(std::env::vars_os())?;
        Self::of(arguments, &environment, directory)
    }

    fn of(
        arguments: Arguments,
        environment: &Environment,
        directory: Directory,
    ) -> Result<Self, CommandError> {
        let file = SettingsFile::read(&directory)?;
        let (stored, malformed_session) = match StoredSession::read(&directory) {
            Ok(stored) => (stored, None),
            Err(CommandError::SessionMalformed(path)) => (None, Some(path)),
            Err(refused) => return Err(refused),
        };
        let login_options = login_options(environment, &file);
        let named = arguments.server.or(environment.text("SERVER"));
        // Normalized as in the session. A malformed address is reported when it is used.
        let named = named.map(|server| address(&server).unwrap_or(server));
        // A session is only valid for its own server.
        let session =
            stored.filter(|stored| named.as_ref().is_none_or(|named| *named == stored.server));
        let of_session = session.as_ref();
        let of_login = of_session.map(|session| session.ca_cert.clone());
        let (ca_cert, ca_cert_origin) = first_given([
            (arguments.ca_cert, "--ca-cert"),
            (
                environment.path("CA_CERT").into_iter().collect(),
                "KEYWRIGHT_CLIENT_CA_CERT",
            ),
            (of_login.unwrap_or_default(), LOGIN),
            (file.ca_cert.into_iter().collect(), SETTINGS_FILE),
        ]);
        let of_arguments = pair((arguments.cert, arguments.key), ("--cert", "--key"))?;
        let variables = ("KEYWRIGHT_CLIENT_CERT", "KEYWRIGHT_CLIENT_KEY");
        let of_variables = (environment.path("CERT"), environment.path("KEY"));
        let of_login = of_session.and_then(|session| session.cert.clone().zip(session.key.clone()));
        let certificates = [
            (of_arguments, "--cert, --key"),
            (pair(of_variables, variables)?, VARIABLES_OF_CERTIFICATE),
            (of_login, LOGIN),
            (pair((file.cert, file.key), ("cert", "key"))?, SETTINGS_FILE),
        ];
        let given = certificates.into_iter().find(|(files, _)| files.is_some());
        let (client_certificate, certificate_origin) = given.unwrap_or_default();
        // Arguments override variables, so a token file overrides a client in the environment.
        let grant = grant(environment)?.filter(|_| arguments.token_file.is_none());
        let token = access_token(arguments.token_file.as_deref(), environment)?;
        let (token, token_source) = token.unzip();
        let tokens = match (token, &grant) {
            (Some(token), _) => Some(Tokens::new(token, None)),
            (None, Some(_)) => None,
            (None, None) => of_session.and_then(StoredSession::tokens),
        };
        Ok(Self {
            server: named
                .or(of_session.map(|session| session.server.clone()))
                .or(file.server),
            ca_cert,
            ca_cert_origin,
            client_certificate,
            certificate_origin,
            output: arguments.output.or(output(environment)?).or(file.output),
            retries_max: retries(environment)?.or(file.retries),
            grant,
            login_options,
            tokens,
            token_source,
            has_token_file: arguments.token_file.is_some(),
            session,
            malformed_session,
            directory,
        })
    }

    /// Returns a configured client without an identity other than the client certificate.
    pub(crate) fn anonymous_client(&self) -> Result<ClientBuilder, CommandError> {
        let server = self.server.as_deref().ok_or_else(|| {
            let message = "no server is set; log in, or set --server or KEYWRIGHT_CLIENT_SERVER";
            CommandError::Other(message.to_owned())
        })?;
        let mut builder = Client::builder(server);
        for path in &self.ca_cert {
            let pem = read_authorities(path);
            let pem = pem.map_err(|cause| of_origin(self.ca_cert_origin, &cause))?;
            builder = builder.trusting_only(pem.to_vec());
        }
        if let Some((cert, key)) = &self.client_certificate {
            let pems = read_client_certificate(cert, key);
            let [cert, key] = pems.map_err(|cause| of_origin(self.certificate_origin, &cause))?;
            builder = builder.client_certificate(&cert, &key);
        }
        if let Some(retries_max) = self.retries_max {
            builder = builder.retries_max(retries_max);
        }
        Ok(builder)
    }

    /// Returns whether the client certificate comes from the session.
    pub(crate) fn is_certificate_of_session(&self) -> bool {
        self.certificate_origin == LOGIN
    }

    /// Returns whether the caller has an identity: a grant, tokens or a client certificate.
    pub(crate) fn has_identity(&self) -> bool {
        self.grant.is_some() || self.tokens.is_some() || self.client_certificate.is_some()
    }
}

/// Adds the option or variable that names the file.
fn of_origin(origin: &str, cause: &CommandError) -> CommandError {
    CommandError::Other(format!("{origin}: {cause}"))
}

/// Returns the first list that is not empty, and its origin.
fn first_given(lists: [(Vec<PathBuf>, &'static str); 4]) -> (Vec<PathBuf>, &'static str) {
    let mut lists = lists.into_iter();
    let given = lists.find(|(list, _)| !list.is_empty());
    given.unwrap_or_default()
}

/// Returns both settings, or `None` if neither is set.
fn pair<One, Other>(
    both: (Option<One>, Option<Other>),
    names: (&'static str, &'static str),
) -> Result<Option<(One, Other)>, CommandError> {
    let incomplete =
        |missing, given| CommandError::Other(format!("missing {missing}, which {given} requires"));
    match both {
        (Some(one), Some(other)) => Ok(Some((one, other))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(incomplete(names.1, names.0)),
        (None, Some(_)) => Err(incomplete(names.0, names.1)),
    }
}

fn output(environment: &Environment) -> Result<Option<OutputFormat>, CommandError> {
    let output = environment.text("OUTPUT");
    let output = output.map(|text| OutputFormat::from_str(&text, true));
    output.transpose().map_err(|_| {
        let message = "environment variable KEYWRIGHT_CLIENT_OUTPUT must be json, yaml or table";
        CommandError::Other(message.to_owned())
    })
}

fn retries(environment: &Environment) -> Result<Option<u32>, CommandError> {
    let Some(text) = environment.text("RETRIES") else {
        return Ok(None);
    };
    match text.parse() {
        Ok(count @ 0..=RETRIES_MAX) => Ok(Some(count)),
        _ => Err(CommandError::Other(
            "environment variable KEYWRIGHT_CLIENT_RETRIES must be a whole number from 0 to 20"
                .to_owned(),
        )),
    }
}

fn grant(environment: &Environment) -> Result<Option<Grant>, CommandError> {
    let client = (environment.text("ID"), environment.secret("SECRET"));
    let client = pair(client, ("KEYWRIGHT_CLIENT_ID", "KEYWRIGHT_CLIENT_SECRET"))?;
    Ok(client.map(|(client_id, secret)| Grant::ClientCredentials {
        client_id,
        client_secret: secret.clone(),
    }))
}

fn login_options(environment: &Environment, file: &SettingsFile) -> LoginOptions {
    LoginOptions {
        client_id: file.client_id.clone(),
        scope: environment.text("SCOPE").or(file.scope.clone()),
        audience: environment.text("AUDIENCE").or(file.audience.clone()),
        resource: environment.text("RESOURCE").or(file.resource.clone()),
        is_of_client: false,
    }
}

/// Reads certificates of CAs, and checks that TLS can use them.
fn read_authorities(path: &Path) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    let pem = read_certificates(path)?;
    for (index, certificate) in CertificateDer::pem_slice_iter(&pem).enumerate() {
        let is_usable = certificate.is_ok_and(|der| RootCertStore::empty().add(der).is_ok());
        if !is_usable {
            let reason = format!("certificate {} is malformed", index + 1);
            return Err(invalid(path, &reason));
        }
    }
    Ok(pem)
}

/// Reads a client certificate with its chain and its private key, and checks that TLS can use them.
fn read_client_certificate(
    cert: &Path,
    key: &Path,
) -> Result<[Zeroizing<Vec<u8>>; 2], CommandError> {
    let pems = [read_certificates(cert)?, read_key(key)?];
    let [chain, keys] = &pems;
    let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|_| invalid(cert, "a certificate is malformed"))?;
    let key_unusable = || {
        invalid(
            key,
            "the private key is malformed or of an unsupported type",
        )
    };
    let keys = PrivateKeyDer::pem_slice_iter(keys).collect::<Result<Vec<_>, _>>();
    let last = keys.ok().and_then(|mut keys| keys.pop());
    match CertifiedKey::from_der(chain, last.ok_or_else(key_unusable)?, &default_provider()) {
        Ok(_) => Ok(pems),
        Err(TlsError::InconsistentKeys(_)) => Err(invalid(
            key,
            &format!(
                "the private key does not match the certificate in {}",
                cert.display()
            ),
        )),
        Err(TlsError::InvalidCertificate(_)) => Err(invalid(
            cert,
            "the first certificate is malformed or not of X.509 version 3",
        )),
        Err(_) => Err(key_unusable()),
    }
}

fn invalid(path: &Path, reason: &str) -> CommandError {
    CommandError::Other(format!("{}: {reason}", path.display()))
}

fn read_certificates(path: &Path) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    read_pem(path, "-----BEGIN CERTIFICATE-----", "certificate")
}

fn read_key(path: &Path) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    let pem = read_pem(path, "PRIVATE KEY-----", "private key")?;
    let marks = ["BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED"];
    if marks.iter().any(|mark| contains(&pem, mark)) {
        return Err(CommandError::Other(format!(
            "the private key in {} is encrypted; store it without a passphrase",
            path.display()
        )));
    }
    Ok(pem)
}

fn read_pem(path: &Path, mark: &str, kind: &str) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    let failed = |cause| FileAccessError::new(path, "read", cause);
    let file = File::open(path).map_err(failed)?;
    let mut pem = Zeroizing::new(Vec::new());
    let read = file.take(PEM_BYTES_MAX + 1).read_to_end(&mut pem);
    if read.map_err(failed)? as u64 > PEM_BYTES_MAX {
        let reason = format!("must have at most {PEM_BYTES_MAX} bytes");
        return Err(invalid(path, &reason));
    }
    if !contains(&pem, mark) {
        return Err(CommandError::Other(format!(
            "{} contains no PEM {kind}",
            path.display()
        )));
    }
    Ok(pem)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    let mut windows = bytes.windows(text.len());
    windows.any(|window| window == text.as_bytes())
}

const HEADING: &str = "Global options";

/// Maximum size of a file of certificates or keys, in bytes. All CAs that a system trusts together have less than 1 MiB.
const PEM_BYTES_MAX: u64 = 16 * 1024 * 1024;

const VARIABLES_OF_CERTIFICATE: &str = "KEYWRIGHT_CLIENT_CERT, KEYWRIGHT_CLIENT_KEY";

/// The source of settings from the session.
const LOGIN: &str = "the saved login";

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::Secret;

    /// Returns a folder with these settings and a session for this server.
    fn folder(settings: &str, session: Option<&str>) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("settings.toml"), settings).unwrap();
        if let Some(server) = session {
            let session = StoredSession {
                server: server.to_owned(),
                ca_cert: vec!["/session.pem".into()],
                ..StoredSession::default()
            };
            let session = session.with_tokens(Tokens::new(Secret::new("token".to_owned()), None));
            session.write(&Directory(folder.path().to_owned())).unwrap();
        }
        folder
    }

    /// Combines the settings of a folder with arguments and variables, whose names start with `KEYWRIGHT_CLIENT_`.
    fn of(
        folder: &TempDir,
        arguments: Arguments,
        variables: &[(&str, &str)],
    ) -> Result<Settings, CommandError> {
        let variables = variables.iter().map(|(name, value)| {
            let name = format!("KEYWRIGHT_CLIENT_{name}");
            (name.into(), value.into())
        });
        let environment = Environment::read(variables).unwrap();
        Settings::of(arguments, &environment, Directory(folder.path().to_owned()))
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
            let settings = of(&folder, named(server), &[]).unwrap();
            assert_eq!(settings.session.is_some(), is_found, "{server}");
            assert_eq!(settings.tokens.is_some(), is_found, "{server}");
        }
    }

    #[test]
    fn arguments_override_variables_then_session_then_file() {
        let settings = "server = \"https://file\"\nca_cert = \"file.pem\"\noutput = \"yaml\"";
        let variables = &[("SERVER", "https://variable"), ("OUTPUT", "table")][..];
        let with_session = folder(settings, Some("https://session"));
        let without_session = folder(settings, None);
        let argument = named("https://argument");
        for (folder, arguments, variables, server) in [
            (&with_session, argument, variables, "https://argument"),
            (
                &with_session,
                Arguments::default(),
                variables,
                "https://variable",
            ),
            (&with_session, Arguments::default(), &[], "https://session"),
            (&without_session, Arguments::default(), &[], "https://file"),
        ] {
            let settings = of(folder, arguments, variables).unwrap();
            assert_eq!(settings.server.as_deref(), Some(server));
        }
        let settings = of(&with_session, Arguments::default(), &[]).unwrap();
        assert_eq!(settings.ca_cert, [PathBuf::from("/session.pem")]);
        assert_eq!(settings.output, Some(OutputFormat::Yaml));
        let settings = of(&without_session, Arguments::default(), variables).unwrap();
        assert_eq!(settings.ca_cert, [without_session.path().join("file.pem")]);
        assert_eq!(settings.output, Some(OutputFormat::Table));
    }

    #[test]
    fn a_token_file_overrides_variables_then_the_session() {
        let folder = folder("", Some("https://session"));
        let file = folder.path().join("token");
        fs::write(&file, "of-file\n").unwrap();
        let with_file = Arguments {
            token_file: Some(file),
            ..Arguments::default()
        };
        let client = [("ID", "app"), ("SECRET", "secret")];
        let with_token = [client[0], client[1], ("TOKEN", "of-variable")];
        let without_file = Arguments::default;
        for (arguments, variables, token, has_grant) in [
            (with_file, &with_token[..], Some("of-file"), false),
            (without_file(), &with_token, Some("of-variable"), true),
            (without_file(), &client, None, true),
            (without_file(), &[], Some("token"), false),
        ] {
            let settings = of(&folder, arguments, variables).unwrap();
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
        let settings = of(&folder, Arguments::default(), &[("SCOPE", "of-variable")]).unwrap();
        let options = settings.login_options;
        assert_eq!(options.client_id.as_deref(), Some("cli"));
        assert_eq!(options.scope.as_deref(), Some("of-variable"));
        assert_eq!(options.audience.as_deref(), Some("of-file"));
        assert_eq!(options.resource.as_deref(), Some("of-file"));
    }

    #[test]
    fn an_error_names_the_invalid_setting_or_its_file() {
        let plain = folder("", None);
        for (variable, words) in [
            (("RETRIES", "21"), "KEYWRIGHT_CLIENT_RETRIES"),
            (("OUTPUT", "xml"), "KEYWRIGHT_CLIENT_OUTPUT"),
            (("ID", "app"), "missing KEYWRIGHT_CLIENT_SECRET"),
            (("CERT", "/cert.pem"), "missing KEYWRIGHT_CLIENT_KEY"),
        ] {
            let refused = of(&plain, Arguments::default(), &[variable]).unwrap_err();
            assert!(refused.to_string().contains(words), "{refused}");
        }
        let settings = of(&plain, Arguments::default(), &[("RETRIES", "20")]).unwrap();
        assert_eq!(settings.retries_max, Some(20));

        for (text, words) in [
            ("servr = \"x\"", "servr"),
            ("retries = 21", "settings.toml: retries must be at most 20"),
            ("retries = \"x\"", "line 1: retries: invalid type: "),
            ("cert = \"cert.pem\"", "missing key"),
            ("server = ", "settings.toml: line 1: "),
        ] {
            let folder = folder(text, None);
            let refused = of(&folder, Arguments::default(), &[]).unwrap_err();
            assert!(refused.to_string().contains(words), "{refused}");
        }
    }
}
