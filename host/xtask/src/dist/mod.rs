//! Builds a release: an archive with the program, the plugins and other files for operators, and its checksum.
//!
//! `contents.rs` lists the contents and writes the archive. `packages.rs` creates the bill of materials and collects the licences.
//! The build is reproducible with the same toolchain on the same system: entries are sorted, and have the time of the commit.

mod contents;
mod packages;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    guests::{self, Which, shipped_components},
    step::{self, output, read},
};

pub(crate) use self::contents::digest;

use self::{
    contents::{ArchivedFile, Parts, write_archive},
    packages::{Graph, bill_of_materials, licences},
};

/// Builds everything and writes the archive and its checksum to `target/dist`.
pub(crate) fn dist(arguments: &[String]) -> Result<()> {
    let is_debug = match arguments {
        [] => false,
        [only] if only == "--debug" => true,
        _ => bail!("usage: cargo xtask dist [--debug]"),
    };
    let components = guests::build(Which::Shipped)?;
    let program = if is_debug {
        // Built with the profile of the tests.
        step::run(step::cargo().args(["build", "--locked", "--workspace", "--bins"]))?;
        step::workspace().join("target/debug/keywright")
    } else {
        build_release(&components)?
    };
    let host = host_triple()?;
    let program_graph = Graph::of_program(&host)?;
    let plugin_graph = Graph::of_plugins()?;
    let mtime = time()?;
    let version = program_graph.version_of_program()?;
    let parts = Parts {
        program: &program,
        components: &components,
        bill: bill_of_materials(&[&program_graph, &plugin_graph], mtime)?,
        licences: licences(&[&program_graph, &plugin_graph])?,
        shell: shell_files(&program)?,
    };

    let name = name(&version, &host, is_debug, is_modified());
    let folder = step::workspace().join("target/dist");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let archive = folder.join(format!("{name}.tar.gz"));
    let bytes = write_archive(&name, parts.files()?, mtime)?;
    write(&archive, &bytes)?;
    let digest = digest(&bytes);
    write(
        &folder.join(format!("{name}.tar.gz.sha256")),
        format!("{digest}  {name}.tar.gz\n").as_bytes(),
    )?;
    println!("{}", archive.display());
    Ok(())
}

/// Returns the name of the archive, which marks debug builds and uncommitted changes.
fn name(version: &str, host: &str, is_debug: bool, is_modified: bool) -> String {
    let debug = if is_debug { "-debug" } else { "" };
    let modified = if is_modified { "-modified" } else { "" };
    format!("keywright-{version}-{host}{debug}{modified}")
}

/// Returns whether the work tree differs from the commit. False if git fails, because then there is no commit.
fn is_modified() -> bool {
    let status = output(Command::new("git").args(["status", "--porcelain"]));
    status.is_ok_and(|changes| !changes.is_empty())
}

/// Builds the program with the profile of releases, in its own folder. It contains no paths of this machine.
///
/// It embeds the digests of the shipped components, which its servers do not test. So the program tests them here.
fn build_release(components: &Path) -> Result<PathBuf> {
    let files = shipped_components()?.into_iter();
    let files: Vec<_> = files.map(|name| components.join(name)).collect();
    let digests = files.iter().map(|file| Ok(digest(&read(file)?)));
    let digests = digests.collect::<Result<Vec<_>>>()?.join(" ");
    let target = step::workspace().join("target/dist-build");
    let mut cargo = step::cargo();
    cargo
        .args(["build", "--locked", "--profile", "dist"])
        .args(["--package", "keywright-server", "--target-dir"])
        .arg(&target)
        .env("KEYWRIGHT_TESTED_COMPONENTS", digests)
        .env_remove("RUSTFLAGS")
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            step::remapped_paths().join("\x1f"),
        );
    step::run(&mut cargo)?;
    let program = target.join("dist/keywright");
    step::run(
        Command::new(&program)
            .args(["plugin", "tested"])
            .args(files),
    )?;
    Ok(program)
}

/// Returns the target triple of the host toolchain.
fn host_triple() -> Result<String> {
    let described = output(Command::new("rustc").arg("-vV"))?;
    let host = described
        .lines()
        .find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not report its host")
}

/// Returns the time of all entries in the archive, in seconds since 1970: `SOURCE_DATE_EPOCH`, or the time of the commit.
fn time() -> Result<u64> {
    let seconds = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => seconds,
        Err(_) => output(Command::new("git").args(["log", "-1", "--format=%ct"]))?,
    };
    seconds
        .trim()
        .parse()
        .with_context(|| format!("reading the time {seconds:?}"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Returns the manual pages and completions, written by the program.
fn shell_files(program: &Path) -> Result<Vec<ArchivedFile>> {
    let mut files = Vec::new();
    for (shell, path) in COMPLETIONS {
        let script = output(Command::new(program).args(["completions", shell]))?;
        files.push(ArchivedFile::plain(path, script.into_bytes()));
    }
    let folder = step::workspace().join("target/dist/man");
    let doing = || format!("reading {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(doing)?;
    }
    step::run(Command::new(program).arg("man-pages").arg(&folder))?;
    for page in fs::read_dir(&folder).with_context(doing)? {
        let page = page.with_context(doing)?;
        let name = page.file_name().to_string_lossy().into_owned();
        let bytes = read(&page.path())?;
        files.push(ArchivedFile::plain(&format!("man/man1/{name}"), bytes));
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// The shells, and the paths of their completions in the archive, named as the shells expect.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "completions/keywright.bash"),
    ("fish", "completions/keywright.fish"),
    ("zsh", "completions/_keywright"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_marks_debug_builds_and_uncommitted_changes() {
        for (is_debug, is_modified, expected) in [
            (false, false, "keywright-1.2.3-wasm"),
            (true, false, "keywright-1.2.3-wasm-debug"),
            (false, true, "keywright-1.2.3-wasm-modified"),
            (true, true, "keywright-1.2.3-wasm-debug-modified"),
        ] {
            assert_eq!(name("1.2.3", "wasm", is_debug, is_modified), expected);
        }
    }
}
