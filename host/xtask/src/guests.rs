//! Building guests in Rust: the shipped plugins, the example, and the guests that only tests run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, anyhow};
use keywright_author::component_of_module;

use crate::step;

/// Which guests to build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The shipped plugins, the example and the test guests.
    All,
    /// Only the shipped plugins.
    Shipped,
}

/// Builds guests and returns the folder with their components, each named as its plugin.
pub(crate) fn build(which: Which) -> Result<PathBuf> {
    ensure_wasm_target()?;
    let root = step::workspace();
    let components = components()?;
    let mut packages = shipped_packages()?;
    if which == Which::All {
        let crates = crates(&root.join("tests/guests"), TEST_GUEST_PREFIX)?;
        packages.extend(crates);
    }
    let target_folder = root.join("target/guests");
    let mut cargo = guest_cargo(&target_folder);
    cargo.args(["--profile", "guest"]);
    for package in &packages {
        cargo.args(["--package", package]);
    }
    step::run(&mut cargo)?;
    for package in &packages {
        componentize(
            &module(&target_folder, package),
            &components.join(component_file(package)),
        )?;
    }
    if which == Which::All {
        build_example(&components)?;
    }
    Ok(components)
}

/// Returns the folder with the components of all guests, in any language.
pub(crate) fn components() -> Result<PathBuf> {
    let components = step::workspace().join("target/components");
    fs::create_dir_all(&components)
        .with_context(|| format!("creating {}", components.display()))?;
    Ok(components)
}

/// Builds the example, which has its own workspace, like the project of a plugin author.
fn build_example(components: &Path) -> Result<()> {
    let target_folder = step::workspace().join("target/example-guests");
    let mut cargo = guest_cargo(&target_folder);
    cargo.args(["--release", "--manifest-path", EXAMPLE_MANIFEST]);
    step::run(&mut cargo)?;
    componentize(
        &target_folder
            .join(WASM_TARGET)
            .join("release")
            .join("wireguard_generator.wasm"),
        &components.join("wireguard.wasm"),
    )
}

/// The manifest of the example in Rust, from the workspace's root.
pub(crate) const EXAMPLE_MANIFEST: &str = "examples/wireguard-generator/Cargo.toml";

/// Returns the file names of the components of the shipped plugins.
pub(crate) fn shipped_components() -> Result<Vec<String>> {
    let packages = shipped_packages()?.into_iter();
    let names = packages.map(|package| component_file(&package));
    Ok(names.collect())
}

pub(crate) fn shipped_packages() -> Result<Vec<String>> {
    let mut packages = crates(&step::workspace().join("plugins"), PLUGIN_PREFIX)?;
    packages.retain(|package| package != SUPPORT);
    Ok(packages)
}

fn component_file(package: &str) -> String {
    let name = package
        .trim_start_matches(PLUGIN_PREFIX)
        .trim_start_matches(TEST_GUEST_PREFIX);
    format!("{name}.wasm")
}

/// The library that the plugins share.
const SUPPORT: &str = "keywright-plugin-support";
const PLUGIN_PREFIX: &str = "keywright-plugin-";
const TEST_GUEST_PREFIX: &str = "keywright-guest-";

/// Wide arithmetic makes RSA key generation in a guest several times faster.
const GUEST_RUST_FLAG: &str = "-Ctarget-feature=+wide-arithmetic,+simd128";

/// The stack of a guest, at the beginning of its memory.
const STACK: &str = "-Clink-arg=-zstack-size=131072";
/// The heap of a guest before its memory first grows. With the stack and the data, most guests need less than the bytes that
/// the host resets without discarding their pages (`MEMORY_BYTES_RESET` in `runtime/src/engine.rs`).
const INITIAL_HEAP: &str = "-Clink-arg=--initial-heap=65536";

fn guest_cargo(target_folder: &Path) -> Command {
    let mut flags = step::remapped_paths();
    flags.extend([GUEST_RUST_FLAG, STACK, INITIAL_HEAP].map(str::to_owned));
    let mut cargo = step::cargo();
    cargo
        .args(["build", "--locked", "--target", WASM_TARGET, "--target-dir"])
        .arg(target_folder)
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        // The host is built at the same time, and two progress bars would overwrite each other.
        .env("CARGO_TERM_PROGRESS_WHEN", "never");
    cargo
}

fn module(target_folder: &Path, package: &str) -> PathBuf {
    let file = format!("{}.wasm", package.replace('-', "_"));
    target_folder.join(WASM_TARGET).join("guest").join(file)
}

/// Returns the packages in a folder, at any depth, in alphabetical order. Each is named after the folders in its path.
fn crates(folder: &Path, prefix: &str) -> Result<Vec<String>> {
    let doing = || format!("listing {}", folder.display());
    let mut packages = Vec::new();
    for entry in fs::read_dir(folder).with_context(doing)? {
        let entry = entry.with_context(doing)?;
        let name = entry.file_name().to_string_lossy().replace('_', "-");
        let package = format!("{prefix}{name}");
        if entry.path().join("Cargo.toml").is_file() {
            packages.push(package);
        } else if entry.path().is_dir() {
            packages.extend(crates(&entry.path(), &format!("{package}-"))?);
        }
    }
    packages.sort();
    Ok(packages)
}

pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// Installs the target if the toolchain lacks it.
fn ensure_wasm_target() -> Result<()> {
    if is_wasm_target_installed()? {
        return Ok(());
    }
    eprintln!("xtask: adding the target {WASM_TARGET}");
    let mut rustup = Command::new("rustup");
    rustup
        .args(["target", "add", WASM_TARGET])
        .current_dir(step::workspace());
    step::run(&mut rustup).map_err(|cause| {
        anyhow!(
            "the plugins are built for {WASM_TARGET}, which this toolchain lacks and which could not be added \
             ({cause:#}). Install it with `rustup target add {WASM_TARGET}`, then try again."
        )
    })
}

fn is_wasm_target_installed() -> Result<bool> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", WASM_TARGET])
        .current_dir(step::workspace())
        .output()
        .context("getting the target's folder from rustc")?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && Path::new(folder.trim()).is_dir())
}

/// Creates a component from a core module built with wit-bindgen. Writes it only if it differs from the existing file.
fn componentize(module: &Path, component: &Path) -> Result<()> {
    let doing = || format!("creating a component from {}", module.display());
    let module_bytes = fs::read(module).with_context(doing)?;
    let bytes = component_of_module(&module_bytes).with_context(doing)?;
    if fs::read(component).is_ok_and(|existing| existing == bytes) {
        return Ok(());
    }
    fs::write(component, bytes).with_context(doing)
}
