//! Plugins for test servers: another release of a plugin, a copy of a shipped plugin with another digest, and the example
//! key management plugin in a separate process.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
};

use tempfile::TempDir;

use crate::{Options, Server, component, key_file, server::server_program, workspace};

/// Returns the folder of compiled plugins, which all servers and commands share.
pub fn compiled_plugins() -> PathBuf {
    user_cache().join(COMPILED_PLUGINS)
}

/// Returns the folder of a user's caches, for commands. Their key for compiled plugins is the key that the servers derive.
pub fn user_cache() -> PathBuf {
    static PREPARED: LazyLock<PathBuf> = LazyLock::new(|| {
        let cache = workspace().join("target/test-cache");
        let plugins = cache.join(COMPILED_PLUGINS);
        let mut private = fs::DirBuilder::new();
        private
            .recursive(true)
            .mode(0o700)
            .create(&plugins)
            .unwrap();
        let (key, file) = (key_file("plugin-cache.key"), plugins.join("key"));
        // Tests that run at the same time may be using it.
        if fs::read(&file).ok() != fs::read(&key).ok() {
            fs::copy(key, file).unwrap();
        }
        cache
    });
    PREPARED.clone()
}

const COMPILED_PLUGINS: &str = "keywright/plugins";

/// Returns the component of another release of a plugin: one text is replaced with another one of the same length.
pub fn release(plugin: &str, (from, to): (&str, &str)) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(component(plugin)).unwrap();
    let positions: Vec<_> = (0..bytes.len() - from.len())
        .filter(|position| bytes[*position..].starts_with(from.as_bytes()))
        .collect();
    assert_eq!(positions.len(), 1, "{from}");
    bytes[positions[0]..positions[0] + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

/// A copy of a shipped component with the same behavior and another digest.
pub struct BadPlugin {
    credential_type: &'static str,
    folder: TempDir,
}

impl BadPlugin {
    /// Copies the shipped plugin of a type, and adds a section that engines ignore.
    pub fn of(credential_type: &'static str) -> Self {
        let plugin = Self {
            credential_type,
            folder: TempDir::new().unwrap(),
        };
        let mut bytes = fs::read(component(credential_type)).unwrap();
        // A custom section: its id, its length, the length of its name, and its name.
        bytes.extend_from_slice(b"\x00\x04\x03bad");
        fs::write(plugin.path(), bytes).unwrap();
        plugin
    }

    /// Starts a server with this plugin.
    pub async fn server(&self) -> Server {
        Server::start_with(&self.options()).await
    }

    /// Returns the configuration of such a server.
    fn options(&self) -> Options {
        let grants = match self.credential_type {
            "certificate" => r#"["random", "signing"]"#,
            _ => r#"["random"]"#,
        };
        let path = self.path();
        let section = format!("component = \"{}\"\ngrants = {grants}", path.display());
        Options::default().generator(self.credential_type, &section)
    }

    /// Restarts such a server with only the shipped plugins.
    pub async fn replaced(server: Server) -> Server {
        let options = Options::default().beyond_the_specification();
        Server::start_in(server.stop().await, &options).await
    }

    /// Returns the component's SHA-256 digest, with the prefix `sha256:`.
    pub fn digest(&self) -> String {
        crate::digest(&fs::read(self.path()).unwrap())
    }

    /// Returns the path of the component.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("bad.wasm")
    }
}

/// A key management plugin that runs until it is dropped.
pub struct KeyManagementPlugin {
    child: Child,
    socket: PathBuf,
}

impl KeyManagementPlugin {
    /// Starts a plugin in this folder, with the key of this name. The key is created if it does not exist.
    pub fn start(folder: &Path, key: &str) -> Self {
        Self::start_with(folder, key, &[])
    }

    /// Like [`Self::start`], with TLS and the files of the plugin's certificate and private key.
    pub fn start_with_tls(
        folder: &Path,
        key: &str,
        certificate: &Path,
        private_key: &Path,
    ) -> Self {
        let files = [
            ("--certificate", certificate),
            ("--private-key", private_key),
        ];
        Self::start_with(folder, key, &files)
    }

    fn start_with(folder: &Path, key: &str, files: &[(&str, &Path)]) -> Self {
        let socket = folder.join(format!("{key}.sock"));
        let mut command = Command::new(server_program().with_file_name("kms-server"));
        command.arg("--socket").arg(&socket);
        command.arg("--key").arg(folder.join(key));
        for (name, file) in files {
            command.arg(name).arg(file);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line}");
        Self { child, socket }
    }

    /// Returns the plugin's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for KeyManagementPlugin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
