//! Measurements, in a release build.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use crate::{
    guests::{self, Which},
    other_languages, step,
};

/// Builds the plugins, the server and `keywright-bench`, and runs it. With `compare REV`, also builds the server of that revision
/// and measures both alternately.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    let (revision, names) = match arguments {
        [first, revision, names @ ..] if first == COMPARE => (Some(revision), names),
        names => (None, names),
    };
    if revision.is_none() && measures_plugins(names) {
        guests::build(Which::All)?;
        other_languages::build_plugins()?;
    } else {
        guests::build(Which::Shipped)?;
    }
    step::run(step::cargo().args(["build", "--locked", "--workspace", "--bins", "--release"]))?;
    let root = step::workspace();
    // Started directly: cargo would rebuild it, with only the features that this program needs.
    let mut program = Command::new(root.join("target/release/keywright-bench"));
    if let Some(revision) = revision {
        program.arg("--other").arg(build_other(revision)?);
    }
    step::run(program.args(names).current_dir(root))
}

/// Builds the server of a revision in a separate working tree and returns its program.
fn build_other(revision: &str) -> Result<PathBuf> {
    let folder = step::workspace().join("target/compared");
    let (tree, target) = (folder.join("tree"), folder.join("build"));
    let commit = format!("{revision}^{{commit}}");
    let commit = step::output(Command::new("git").args(["rev-parse", "--verify", &commit]))?;
    let mut checkout = Command::new("git");
    if tree.exists() {
        checkout.arg("-C").arg(&tree).args(["checkout", "--detach"]);
    } else {
        checkout.current_dir(step::workspace());
        checkout.args(["worktree", "add", "--detach"]).arg(&tree);
    }
    step::run(checkout.arg(commit.trim()))?;
    let mut build = step::cargo();
    build.args([
        "build",
        "--locked",
        "--release",
        "--workspace",
        "--bin",
        "keywright",
    ]);
    step::run(build.arg("--target-dir").arg(&target).current_dir(&tree))?;
    Ok(target.join("release/keywright"))
}

/// Returns whether plugins in all languages are measured: their measurement is selected, and no components are named.
fn measures_plugins(arguments: &[String]) -> bool {
    let is_component = |argument: &String| {
        let extension = Path::new(argument).extension();
        extension.is_some_and(|extension| extension == "wasm")
    };
    let is_name =
        |argument: &&String| argument.parse::<usize>().is_err() && !is_component(argument);
    let mut names = arguments.iter().filter(is_name).peekable();
    let is_selected = names.peek().is_none() || names.any(|name| name == PLUGINS);
    is_selected && !arguments.iter().any(is_component)
}

/// The argument before the revision that the server is compared with.
const COMPARE: &str = "compare";

/// The measurement of plugins in all languages.
const PLUGINS: &str = "plugins";
