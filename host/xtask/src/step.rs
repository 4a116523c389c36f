//! Steps of a task: runs other programs.

use std::{
    fs,
    panic::resume_unwind,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

/// Runs a program to completion, and shows its output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| shown.clone())?;
    ensure!(status.success(), "{shown}: {status}");
    Ok(())
}

/// Runs all steps in parallel. Returns the first error, in the order of the steps.
pub(crate) fn in_parallel<const N: usize>(
    steps: [&(dyn Fn() -> Result<()> + Sync); N],
) -> Result<()> {
    thread::scope(|scope| {
        let running = steps.map(|step| scope.spawn(step));
        let outcomes = running.map(|step| step.join().unwrap_or_else(|panic| resume_unwind(panic)));
        outcomes.into_iter().collect()
    })
}

/// Like [`run`], for programs that use the network. In CI, retries several times, because other servers may be temporarily
/// unavailable.
pub(crate) fn run_over_network(command: &mut Command) -> Result<()> {
    for pause in RETRY_PAUSES.iter().filter(|_| is_ci()) {
        match run(command) {
            Ok(()) => return Ok(()),
            Err(reason) => {
                eprintln!("xtask: {reason:#}; retrying in {pause:?}");
                thread::sleep(*pause);
            }
        }
    }
    run(command)
}

/// Returns whether the environment variable `CI` is set.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
}

pub(crate) fn install_package(name: &str) -> Result<()> {
    let mut install = Command::new("apt-get");
    run_over_network(install.args(["install", "--yes", "--no-install-recommends", name]))
}

/// Runs a program in the workspace's root, and returns its standard output. Shows its errors.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command
        .current_dir(workspace())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| shown.clone())?;
    ensure!(output.status.success(), "{shown}: {}", output.status);
    String::from_utf8(output.stdout).context(shown)
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

/// Returns a command for the cargo that runs this task, to run in the workspace's root.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace());
    command
}

/// Returns the workspace's root folder.
pub(crate) fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Returns compiler options that keep the paths of this machine out of build outputs.
pub(crate) fn remapped_paths() -> Vec<String> {
    let remapped =
        |path: &Path, name: &str| format!("--remap-path-prefix={}={name}", path.display());
    let mut flags = vec![remapped(&workspace(), "keywright")];
    flags.extend(cargo_home().map(|home| remapped(&home, "cargo")));
    flags
}

fn cargo_home() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
}

/// The pauses before retries over the network.
const RETRY_PAUSES: [Duration; 3] = [
    Duration::from_secs(5),
    Duration::from_secs(20),
    Duration::from_mins(1),
];

/// Returns the files of the workspace that Git does not ignore.
pub(crate) fn tracked_files() -> Result<Vec<PathBuf>> {
    let listed = output(Command::new("git").args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let paths = listed.lines().map(PathBuf::from);
    Ok(paths
        .filter(|path| workspace().join(path).is_file())
        .collect())
}
