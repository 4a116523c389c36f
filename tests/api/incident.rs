//! A plugin that turns out to be bad, and the one that takes its place: the same plugin with another digest.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it starts from is not there"
)]

use std::{fs, path::PathBuf, process::Command};

use keywright_harness::{Options, Server, component};
use tempfile::TempDir;

/// A component that does what a shipped one does, and is another.
pub(crate) struct BadPlugin {
    credential_type: &'static str,
    folder: TempDir,
}

impl BadPlugin {
    /// A copy of the shipped plugin of a type, with a section more, which no engine looks at.
    pub(crate) fn of(credential_type: &'static str) -> Self {
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

    /// A server that has it.
    pub(crate) async fn server(&self) -> Server {
        Server::start_with(&self.options()).await
    }

    /// The configuration of such a server.
    pub(crate) fn options(&self) -> Options {
        let grants = match self.credential_type {
            "certificate" => r#"["random", "signing"]"#,
            _ => r#"["random"]"#,
        };
        let path = self.path();
        let section = format!("component = \"{}\"\ngrants = {grants}", path.display());
        Options::default().generator(self.credential_type, &section)
    }

    /// Its digest, as `sha256sum` says it.
    pub(crate) fn digest(&self) -> String {
        let output = Command::new("sha256sum").arg(self.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        format!("sha256:{}", text.split_whitespace().next().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("bad.wasm")
    }
}

/// Starts the server again, with the shipped plugin in the place of the bad one.
pub(crate) async fn replaced(server: Server) -> Server {
    Server::start_in(server.stop().await, &Options::default()).await
}
