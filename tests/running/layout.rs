//! The example configuration with all of its files, below a test folder instead of `/`; and ports for development servers.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use keywright_harness::{
    Commanded, ReservedPort, component, key_file, run_program, shipped_plugins, workspace,
};
use tempfile::TempDir;

/// A file system below a folder.
pub(crate) struct Layout {
    root: TempDir,
}

impl Layout {
    /// Creates the example with its folders and files.
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
        for plugin in shipped_plugins() {
            let file = layout.path(&format!("usr/lib/keywright/plugins/{plugin}.wasm"));
            fs::copy(component(&plugin), file).unwrap();
        }
        layout.write_configuration(&layout.example());
        layout
    }

    /// Returns a path below the folder.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Returns the folder that replaces `/`.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Returns the example, with paths below the folder.
    pub(crate) fn example(&self) -> String {
        let root = self.root.path().display();
        ["etc", "run", "usr", "var"]
            .into_iter()
            .fold(example(), |text, top| {
                text.replace(&format!("\"/{top}/"), &format!("\"{root}/{top}/"))
            })
    }

    pub(crate) fn write_configuration(&self, text: &str) {
        fs::write(self.configuration(), text).unwrap();
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.path("etc/keywright/keywright.toml")
    }

    /// Runs `keywright check-config`.
    pub(crate) fn check(&self, options: &[&str], variables: &[(&str, &str)]) -> Commanded {
        let file = self.configuration();
        let arguments = [&["check-config"], options, &[file.to_str().unwrap()]].concat();
        run_program(self.root.path(), &arguments, variables)
    }
}

/// Returns the shipped example.
pub(crate) fn example() -> String {
    packaged("keywright.toml")
}

/// Reads a file of the packaging.
pub(crate) fn packaged(name: &str) -> String {
    fs::read_to_string(packaging().join(name)).unwrap()
}

pub(crate) fn packaging() -> PathBuf {
    workspace().join("host/server/packaging")
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Reserved ports of two development servers.
pub(crate) struct Ports {
    pub(crate) first: ReservedPort,
    /// The management port of this server.
    pub(crate) management: ReservedPort,
    pub(crate) second: ReservedPort,
    /// The management port of the second server.
    _second_management: ReservedPort,
}

impl Ports {
    /// Reserves free ports.
    pub(crate) fn reserve() -> Self {
        let reserved =
            (0..ATTEMPTS_MAX).find_map(|_| Self::with_management_port(ReservedPort::any()));
        reserved.unwrap_or_else(|| panic!("no free ports were found"))
    }

    fn with_management_port(first: ReservedPort) -> Option<Self> {
        let after = |distance: u16| ReservedPort::of(first.number().checked_add(distance)?);
        Some(Self {
            management: after(MANAGEMENT_PORT_DISTANCE)?,
            second: after(1)?,
            _second_management: after(MANAGEMENT_PORT_DISTANCE + 1)?,
            first,
        })
    }
}

/// The distance between the two ports of a development server.
const MANAGEMENT_PORT_DISTANCE: u16 = 157;

const ATTEMPTS_MAX: usize = 50;
