//! The example configuration with everything that it names, below a folder of the test's own in the place of `/`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use keywright_harness::{Commanded, component, key_file, run_program, workspace};
use tempfile::TempDir;

/// The plugins that the example names.
pub(crate) const PLUGINS: [&str; 9] = [
    "certificate",
    "ecdsa",
    "ed25519",
    "interpolation",
    "passphrase",
    "password",
    "rsa",
    "ssh",
    "user",
];

/// A system below a folder.
pub(crate) struct Layout {
    root: TempDir,
}

impl Layout {
    /// Makes the folders and the files that the example names, and the example itself.
    pub(crate) fn new() -> Self {
        let layout = Self {
            root: TempDir::new().unwrap(),
        };
        for folder in [
            "etc/keywright/tls",
            "run/credentials/keywright.service",
            "usr/lib/keywright/plugins",
            "var/lib/keywright",
            "var/log/keywright",
        ] {
            fs::create_dir_all(layout.path(folder)).unwrap();
        }
        let tls = layout.path("etc/keywright/tls");
        let credentials = layout.path("run/credentials/keywright.service");
        for (name, folder) in [
            ("ca.pem", &tls),
            ("server.pem", &tls),
            ("server-key.pem", &tls),
            ("other-signing-key.pem", &tls),
            ("encryption.key", &credentials),
        ] {
            let file = folder.join(name);
            fs::copy(key_file(name), &file).unwrap();
            set_mode(&file, 0o600);
        }
        for plugin in PLUGINS {
            let file = layout.path(&format!("usr/lib/keywright/plugins/{plugin}.wasm"));
            fs::copy(component(plugin), file).unwrap();
        }
        layout.write_configuration(&layout.example());
        layout
    }

    /// A path below the folder.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// The folder in the place of `/`.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The example, with its paths below the folder.
    pub(crate) fn example(&self) -> String {
        let root = self.root.path().display();
        ["etc", "run", "usr", "var"]
            .into_iter()
            .fold(example(), |text, top| {
                text.replace(&format!("\"/{top}/"), &format!("\"{root}/{top}/"))
            })
    }

    /// Puts a configuration in the example's place.
    pub(crate) fn write_configuration(&self, text: &str) {
        fs::write(self.configuration(), text).unwrap();
    }

    /// Where the configuration is.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.path("etc/keywright/keywright.toml")
    }

    /// Looks the configuration over.
    pub(crate) fn check(&self, options: &[&str], variables: &[(&str, &str)]) -> Commanded {
        let file = self.configuration();
        let arguments = [&["check-config"], options, &[file.to_str().unwrap()]].concat();
        run_program(self.root.path(), &arguments, variables)
    }
}

/// The example as it is shipped.
pub(crate) fn example() -> String {
    packaged("keywright.toml")
}

/// A file of the packaging.
pub(crate) fn packaged(name: &str) -> String {
    fs::read_to_string(packaging().join(name)).unwrap()
}

/// The folder of the packaging.
pub(crate) fn packaging() -> PathBuf {
    workspace().join("host/server/packaging")
}

/// Sets what may be done with a file.
pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
