//! The example key management plugin, in its own process.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::server::server_program;

/// A key management plugin that runs until it is dropped.
pub struct KeyManagementPlugin {
    child: Child,
    socket: PathBuf,
}

impl KeyManagementPlugin {
    /// Starts a plugin in this folder, with the key of this name, which is created if absent.
    pub fn start(folder: &Path, key: &str) -> Self {
        Self::start_with(folder, key, &[])
    }

    /// The same, with TLS: the files of its certificate and private key.
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

    /// Its socket.
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
