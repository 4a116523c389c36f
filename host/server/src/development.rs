//! At the first start, generates a configuration for development and the files that it refers to.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256,
};
use zeroize::Zeroizing;

use crate::{
    config::{IDENTITY_PATH, ListenAddress},
    started::{StartupContext, StartupError},
};

/// The development identity provider's client for this program's own commands.
pub(crate) const CLIENT_ID: &str = "developer";
/// The client's secret. It is public: the provider is only served on loopback addresses.
pub(crate) const CLIENT_SECRET: &str = "developer-secret";
/// The user of the development identity provider.
const USER_NAME: &str = "developer";
/// The user's password. It is as public as the client's secret.
const USER_PASSWORD: &str = "developer-password";
/// The CA's certificate, relative to the configuration's folder.
pub(crate) const AUTHORITY_FILE: &str = "tls/ca.pem";

/// Generates a configuration and its files in the folder, unless a configuration exists. Returns the configuration's
/// path.
///
/// The configuration is written last, so that the start after an interrupted start generates all files again.
pub(crate) fn prepare(
    directory: &Path,
    plugins: &Path,
    listen: &ListenAddress,
) -> Result<PathBuf, StartupError> {
    create_folder(directory, 0o700)?;
    check_owner(directory)?;
    let config_file = directory.join("keywright.toml");
    if config_file.is_file() {
        return Ok(config_file);
    }
    if directory.join("keywright.db").exists() {
        return Err(StartupError::new(format!(
            "{} has a database, but no keywright.toml; restore that file, because a new encryption key can't decrypt the \
             database, or delete the folder",
            directory.display()
        )));
    }
    create_folder(&directory.join("tls"), 0o700)?;
    let plugins = plugins
        .canonicalize()
        .on_file("accessing the plugin folder", plugins)?;
    // The configuration keeps the folder, so a later start can't correct it.
    if !plugins.join("certificate.wasm").is_file() {
        return Err(StartupError::new(format!(
            "{} contains no certificate.wasm; name the folder with the components of the shipped plugins",
            plugins.display()
        )));
    }

    write_tls_files(directory, listen)?;
    write_private(
        &directory.join("encryption.key"),
        generate_encryption_key()?.as_bytes(),
    )?;
    let signing_key =
        KeyPair::generate_for(&PKCS_RSA_SHA256).while_doing("generating the token signing key")?;
    write_private(
        &directory.join("identity-signing-key.pem"),
        Zeroizing::new(signing_key.serialize_pem()).as_bytes(),
    )?;
    write_private(&config_file, configuration(&plugins, listen).as_bytes())?;
    Ok(config_file)
}

/// Creates a folder with this mode, unless it exists.
pub(crate) fn create_folder(folder: &Path, mode: u32) -> Result<(), StartupError> {
    if folder.exists() && !folder.is_dir() {
        let folder = folder.display();
        return Err(StartupError::new(format!(
            "{folder} is not a folder; name a folder, which is created if missing"
        )));
    }
    let mut builder = fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(mode)
        .create(folder)
        .on_file("creating the folder", folder)
}

/// Checks that no other user could have written the files in a folder.
fn check_owner(folder: &Path) -> Result<(), StartupError> {
    let metadata = fs::metadata(folder).on_file("reading the folder", folder)?;
    let rule = if metadata.uid() != rustix::process::geteuid().as_raw() {
        "must belong to the user that the server runs as"
    } else if metadata.mode() & 0o022 != 0 {
        "must be writable only by its owner"
    } else {
        return Ok(());
    };
    let folder = folder.display();
    Err(StartupError::new(format!(
        "{folder} {rule}; name another folder, which is created if missing"
    )))
}

/// The instructions printed when a development server starts to listen. The README contains the same commands.
pub(crate) struct Announcement {
    authority: PathBuf,
    console: Option<String>,
}

impl Announcement {
    /// Creates an announcement for the server with this certificate, and with a console at this address. The CA's certificate
    /// is next to the server's.
    pub(crate) fn new(certificate: &Path, console: Option<String>) -> Self {
        Self {
            console,
            authority: certificate.with_file_name("ca.pem"),
        }
    }

    /// Prints the next commands to standard output.
    pub(crate) fn print(&self, address: SocketAddr) {
        let authority = shell_word(&self.authority.to_string_lossy());
        let path = path_line();
        let console = console_lines(self.console.as_deref());
        // The server also runs if the instructions can't be printed.
        let _ = writeln!(
            io::stdout(),
            r"
Keywright listens on https://{address}

The development identity provider is enabled, and its secrets are public. Never use this configuration in production.

In another terminal, log in and generate your first credential:

{path}  echo {CLIENT_SECRET} | keywright login --server https://{address} --ca-cert {authority} --client-id {CLIENT_ID}
  keywright generate /demo/password --type password
  keywright get /demo/password --raw
  keywright find --path /demo

Other clients of the CredHub API, such as curl, request a token like this:

  curl -s --cacert {authority} https://{address}{IDENTITY_PATH}/oauth/token -d grant_type=client_credentials -d client_id={CLIENT_ID} -d client_secret={CLIENT_SECRET}
{console}
Stop the server with Ctrl-C."
        );
    }
}

/// Returns the instructions for the console. Configurations of earlier versions have no console.
fn console_lines(address: Option<&str>) -> String {
    match address {
        Some(address) => format!(
            "\nThe console for browsers is at {address}. Log in as {USER_NAME} with the password {USER_PASSWORD}.\n"
        ),
        None => "\nThis server has no console for browsers, because its configuration has no section [console]. To get one, stop the \
                 server, delete the folder of the configuration, which also deletes all credentials, and start it again.\n"
            .to_owned(),
    }
}

/// Returns a command that adds this program to the shell's path, if necessary.
fn path_line() -> String {
    let program = std::env::current_exe().ok();
    let Some(folder) = program.as_deref().and_then(Path::parent) else {
        return String::new();
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|known| known == folder) {
        return String::new();
    }
    let folder = shell_word(&folder.to_string_lossy());
    format!("  export PATH={folder}:$PATH\n")
}

/// Returns the text as one word of a shell, quoted if necessary.
fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@".contains(letter);
    if text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Creates a CA, and a certificate for the loopback names and the listen address.
fn write_tls_files(directory: &Path, listen: &ListenAddress) -> Result<(), StartupError> {
    let refused = |cause| StartupError::while_doing("generating the TLS certificate", cause);
    let mut authority = CertificateParams::default();
    authority
        .distinguished_name
        .push(DnType::CommonName, "Keywright development authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate().map_err(refused)?;
    let authority = CertifiedIssuer::self_signed(authority, authority_key).map_err(refused)?;

    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let host = listen.host().to_owned();
    if !names.contains(&host) {
        names.push(host);
    }
    let mut server = CertificateParams::new(names).map_err(refused)?;
    server
        .distinguished_name
        .push(DnType::CommonName, "Keywright development server");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let server_key = KeyPair::generate().map_err(refused)?;
    let certificate = server.signed_by(&server_key, &authority).map_err(refused)?;

    write_private(&directory.join(AUTHORITY_FILE), authority.pem().as_bytes())?;
    write_private(
        &directory.join("tls/server.pem"),
        certificate.pem().as_bytes(),
    )?;
    write_private(
        &directory.join("tls/server-key.pem"),
        Zeroizing::new(server_key.serialize_pem()).as_bytes(),
    )
}

fn generate_encryption_key() -> Result<Zeroizing<String>, StartupError> {
    let mut key = Zeroizing::new([0; 32]);
    SystemRandom::new()
        .fill(key.as_mut())
        .while_doing("generating the encryption key")?;
    Ok(Zeroizing::new(STANDARD.encode(key.as_ref())))
}

/// Writes a file that only its owner can read, replacing one from an interrupted start. Writes neither through a link nor into a
/// file of another user. The file is never incomplete: the next start would use an incomplete configuration.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), StartupError> {
    let new = path.with_extension("new");
    // The next line reports any file that remains.
    let _ = fs::remove_file(&new);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options
        .open(&new)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&new, path)
        })
        .on_file("writing", path)
}

fn configuration(plugins: &Path, listen: &ListenAddress) -> String {
    format!(
        include_str!("development.template.toml"),
        client_id = CLIENT_ID,
        client_secret = CLIENT_SECRET,
        user_name = USER_NAME,
        user_password = USER_PASSWORD,
        identity_path = IDENTITY_PATH,
        listen = listen,
        management = management_address(listen),
        plugins = in_toml_string(&plugins.to_string_lossy()),
    )
}

/// Returns the management address for a listen address: a fixed distance between the ports lets several servers run. If
/// the system chooses one port, it chooses the other, too.
fn management_address(listen: &ListenAddress) -> ListenAddress {
    let loopback = listen.ip().filter(IpAddr::is_loopback);
    let ip = loopback.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let port = match listen.port() {
        0 => 0,
        port => port
            .checked_add(MANAGEMENT_PORT_DISTANCE)
            .unwrap_or_else(|| port - MANAGEMENT_PORT_DISTANCE),
    };
    ListenAddress::new(ip, port)
}

/// Escapes a text for a TOML basic string, which has the same escapes as JSON.
fn in_toml_string(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let inner = quoted.strip_prefix('"');
    let inner = inner.and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

/// The distance between the two ports: 9001 for 8844.
const MANAGEMENT_PORT_DISTANCE: u16 = 157;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_as_one_shell_word() {
        for (text, word) in [
            ("/a/b-1.pem", "/a/b-1.pem"),
            ("/a b", "'/a b'"),
            ("/it's $HOME", r"'/it'\''s $HOME'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }

    #[test]
    fn the_key_of_a_database_without_configuration_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for file in ["certificate.wasm", "encryption.key", "keywright.db"] {
            fs::write(path.join(file), "kept").unwrap();
        }
        prepare(path, path, &"127.0.0.1:8844".parse().unwrap()).unwrap_err();
        assert_eq!(fs::read(path.join("encryption.key")).unwrap(), b"kept");
    }

    #[test]
    fn the_management_port_is_at_a_fixed_distance() {
        for (listen, management) in [
            ("127.0.0.1:8844", "127.0.0.1:9001"),
            ("127.0.0.1:8845", "127.0.0.1:9002"),
            ("127.0.0.2:8844", "127.0.0.2:9001"),
            ("[::1]:8844", "[::1]:9001"),
            ("127.0.0.1:65535", "127.0.0.1:65378"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("192.0.2.1:8844", "127.0.0.1:9001"),
            ("localhost:8844", "127.0.0.1:9001"),
        ] {
            let listen = &listen.parse().unwrap();
            assert_eq!(management_address(listen).to_string(), management);
            let written = configuration(Path::new("/plugins"), listen);
            let line = format!("[management]\nlisten = \"{management}\"\n");
            assert!(written.contains(&line), "{written}");
        }
    }

    #[test]
    fn quotes_in_the_plugin_folder_are_escaped() {
        let listen = &"127.0.0.1:8844".parse().unwrap();
        let written = configuration(Path::new(r#"/a\ "b""#), listen);
        let line = r#"component = "/a\\ \"b\"/rsa.wasm""#;
        assert!(written.contains(line), "{written}");
    }
}
