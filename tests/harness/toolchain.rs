//! The toolchains of other languages that `cargo xtask test` installs below `target`, and components built with them.

use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    process::Command,
};

use crate::{is_available, workspace};

/// A component built by the toolchain of another language. A missing toolchain is reported, and is an error in CI.
pub fn component_by_toolchain(name: &str) -> Option<PathBuf> {
    let file = format!("{name}.wasm");
    let path = workspace().join("target/components").join(&file);
    found(path, &format!("{file} is not built"))
}

/// A client in another language than Rust, a file or a folder below `target/clients`; absent in the same way.
pub fn client_by_toolchain(name: &str) -> Option<PathBuf> {
    let path = workspace().join("target/clients").join(name);
    found(path, &format!("the client {name} is not built"))
}

/// The Python with the packages that `host/xtask/toolchains/requirements.txt` lists; absent in the same way.
pub fn toolchain_python() -> Option<Command> {
    let path = workspace().join("target/toolchains/python/bin/python3");
    found(path, "Python's packages are not installed").map(Command::new)
}

/// Node.js, with packages of npm.
pub struct Node {
    /// The program.
    pub program: PathBuf,
    /// The folder of the packages that `tests/clients/node/package-lock.json` lists.
    pub modules: PathBuf,
}

/// Node.js with its packages; absent in the same way.
pub fn node() -> Option<Node> {
    let modules = workspace().join("target/test-clients/node/node_modules");
    let package = modules.join("oidc-provider/package.json");
    found(package, "npm's packages are not installed")?;
    let program = toolchain_program("node")?.get_program().into();
    Some(Node { program, modules })
}

/// A program of those toolchains, which may also be on the `PATH`; a missing one is reported likewise.
pub fn toolchain_program(name: &str) -> Option<Command> {
    let installed = workspace().join("target/toolchains/bin").join(name);
    if installed.is_file() {
        return Some(Command::new(installed));
    }
    is_available(name).then(|| Command::new(name))
}

fn found(path: PathBuf, absence: &str) -> Option<PathBuf> {
    if path.exists() {
        return Some(path);
    }
    assert!(
        env::var_os("CI").is_none(),
        "{absence}, which is required in CI: {}",
        path.display()
    );
    // Bypasses the test harness, which captures the output of passing tests.
    let _ = writeln!(
        io::stderr(),
        "skipped: {absence} (`cargo xtask test` does that where the toolchain can be installed)"
    );
    None
}
