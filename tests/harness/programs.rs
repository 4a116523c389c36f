//! Other programs for independent verification: installed programs, and the toolchains of other languages that `cargo xtask
//! test` installs below `target`. Also signals processes, waits for their exit and measures their memory.

use std::{
    env, fs,
    io::{self, Write},
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use crate::workspace;

/// Returns whether a program is installed; if not, prints that the test is skipped.
pub fn is_available(name: &str) -> bool {
    let found = env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    assert!(
        found || env::var_os("CI").is_none(),
        "{name} is required in CI"
    );
    if !found {
        print_message(&format!("skipped: {name} is not installed"));
    }
    found
}

/// Prints a message to the terminal, even if output of passing tests is captured.
pub fn print_message(message: &str) {
    // Standard error may be closed, which is allowed.
    let _ = writeln!(io::stderr(), "{message}");
}

/// Sends a process a signal, such as `INT`.
pub fn signal(process_id: u32, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &process_id.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Waits until a process exits.
#[track_caller]
pub fn ended(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("the process did not exit");
        }
        thread::sleep(POLL);
    }
}

/// Waits until a process exits, asserts success, and returns the peak memory observed, in KiB; a peak just before the
/// exit may be missed.
#[track_caller]
pub(crate) fn memory_at_most(mut child: Child) -> u64 {
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(kibibytes.unwrap_or_default());
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return peak;
        }
        thread::sleep(POLL);
    }
}

/// The interval between checks of a process.
const POLL: Duration = Duration::from_millis(2);

/// The timeout for the exit of a process.
const PATIENCE: Duration = Duration::from_mins(10);

/// Returns the path of a component built by the toolchain of another language. A missing toolchain is reported, and is an
/// error in CI.
pub fn component_by_toolchain(name: &str) -> Option<PathBuf> {
    let file = format!("{name}.wasm");
    let path = workspace().join("target/components").join(&file);
    found(path, &format!("{file} is not built"))
}

/// Returns the path of a client in another language, a file or a folder below `target/clients`. A missing client is reported,
/// and is an error in CI.
pub fn client_by_toolchain(name: &str) -> Option<PathBuf> {
    let path = workspace().join("target/clients").join(name);
    found(path, &format!("the client {name} is not built"))
}

/// Returns Python with the packages that `host/xtask/toolchains/requirements.txt` lists. Missing packages are reported, and are
/// an error in CI.
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

/// Returns Node.js with its packages. If they are missing, this is reported, and is an error in CI.
pub fn node() -> Option<Node> {
    let package = npm_package("oidc-provider")?;
    let program = toolchain_program("node")?.get_program().into();
    let modules = package.parent().unwrap().to_owned();
    Some(Node { program, modules })
}

/// Returns the folder of a package that `tests/clients/node/package-lock.json` lists. A missing one is reported, and is an
/// error in CI.
pub fn npm_package(name: &str) -> Option<PathBuf> {
    let modules = workspace().join("target/test-clients/node/node_modules");
    found(modules.join(name), "npm's packages are not installed")
}

/// Returns a program of a toolchain below `target` or on the `PATH`. A missing one is reported, and is an error in CI.
pub fn toolchain_program(name: &str) -> Option<Command> {
    let installed = workspace().join("target/toolchains/bin").join(name);
    if installed.is_file() {
        return Some(Command::new(installed));
    }
    is_available(name).then(|| Command::new(name))
}

/// Returns the folder in which a tool stores files for the user who runs the tests. The variable overrides the folder in the home
/// folder.
pub fn folder_of_user(variable: &str, at_home: &str) -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default());
    env::var_os(variable).map_or_else(|| home().join(at_home), PathBuf::from)
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
    print_message(&format!(
        "skipped: {absence} (`cargo xtask test` installs the toolchain where possible)"
    ));
    None
}

/// Returns a program of the environment in `tests/api/description/requirements.txt`, such as `schemathesis`, or `python3` with
/// all of its packages. A missing one is reported, and is an error in CI.
pub fn python_program(name: &str) -> Option<Command> {
    let environment = workspace().join(ENVIRONMENT);
    if !environment.join(INSTALLED).is_file() {
        assert!(
            env::var_os("CI").is_none(),
            "{name} with its packages is required in CI"
        );
        print_message(&format!(
            "skipped: {name} is not installed in {ENVIRONMENT} (`cargo xtask test` installs it if Python 3 is available)"
        ));
        return None;
    }
    Some(Command::new(environment.join("bin").join(name)))
}

/// The folder in which `cargo xtask test` installs the environment.
const ENVIRONMENT: &str = "target/schemathesis";

/// Exists once the installation is complete.
const INSTALLED: &str = "installed.txt";
