//! A plugin that is found to be bad: a shipped one with another digest.

use std::{fs, path::PathBuf, process::Command};

use tempfile::TempDir;

use crate::{Options, Server, component};

/// A component with the behavior of a shipped one and another digest.
pub struct BadPlugin {
    credential_type: &'static str,
    folder: TempDir,
}

impl BadPlugin {
    /// A copy of the shipped plugin of a type, with an additional section, which engines ignore.
    pub fn of(credential_type: &'static str) -> Self {
        let plugin = Self {
            credential_type,
            folder: TempDir::new().unwrap(),
        };
        let mut bytes = fs::read(component(credential_type)).unwrap();
        // A custom section: its id, its length, and its name with the length of that.
        bytes.extend_from_slice(b"\x00\x04\x03bad");
        fs::write(plugin.path(), bytes).unwrap();
        plugin
    }

    /// A server with this plugin.
    pub async fn server(&self) -> Server {
        Server::start_with(&self.options()).await
    }

    /// The configuration of such a server.
    fn options(&self) -> Options {
        let grants = match self.credential_type {
            "certificate" => r#"["random", "signing"]"#,
            _ => r#"["random"]"#,
        };
        let path = self.path();
        let section = format!("component = \"{}\"\ngrants = {grants}", path.display());
        Options::default().generator(self.credential_type, &section)
    }

    /// The same server, started again with the shipped plugins alone.
    pub async fn replaced(server: Server) -> Server {
        let options = Options::default().beyond_the_specification();
        Server::start_in(server.stop().await, &options).await
    }

    /// Its digest, in the format of `sha256sum`.
    pub fn digest(&self) -> String {
        let output = Command::new("sha256sum").arg(self.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        format!("sha256:{}", text.split_whitespace().next().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("bad.wasm")
    }
}
