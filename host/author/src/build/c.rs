//! C: generates bindings, and compiles a core module with zig or clang.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::{BUILT, BuildFailed, GENERATED, Project};
use crate::{
    outside::{Call, Program},
    wit::World,
};

/// Compiles the C sources in the project's folder with the bindings. Returns the path of the module.
pub(super) fn module(project: &Project<'_>) -> Result<PathBuf, BuildFailed> {
    let compiler = Compiler::find(project)?;
    let mut world = World::of_project(project.folder)?;
    let bindings = Path::new(GENERATED).join(world.name().replace('-', "_"));
    let mut generator = wit_bindgen_c::Opts::default().build();
    project.generate(&mut world, &mut *generator)?;
    let built = Path::new(GENERATED).join(BUILT);
    let component_type = format!("{}_component_type.o", bindings.display());
    Call::new(project.programs, project.folder, &compiler.program)
        .arguments(&compiler.arguments)
        .arguments(["-mexec-model=reactor", "-Os", "-s", "-Wall", STACK])
        .arguments(["-I", GENERATED])
        .arguments([OsString::from("-o"), built.clone().into()])
        .arguments(sources(project.folder)?)
        .arguments([format!("{}.c", bindings.display()), component_type])
        .run()?;
    Ok(project.folder.join(built))
}

/// A compiler, with the arguments that select the target.
struct Compiler {
    program: Program,
    arguments: Vec<&'static str>,
}

impl Compiler {
    fn find(project: &Project<'_>) -> Result<Self, BuildFailed> {
        let find = |name| project.programs.find(name);
        let zig = vec!["cc", "-target", "wasm32-wasi"];
        if let Some(program) = find("zig").or_else(|| find("python-zig")) {
            let arguments = zig;
            return Ok(Self { program, arguments });
        }
        if let Some(program) = find("clang").filter(|_| Path::new(DEBIAN_WASI_LIBC).is_dir()) {
            let arguments = vec!["--target=wasm32-wasi"];
            return Ok(Self { program, arguments });
        }
        if let Some(program) = find("python3").filter(|python| has_ziglang(project, python)) {
            let arguments = [vec!["-m", "ziglang"], zig].concat();
            return Ok(Self { program, arguments });
        }
        Err(BuildFailed::ToolMissing {
            tool: "a C compiler for WebAssembly",
            remedy: "`pip install ziglang`, or zig from https://ziglang.org/download, or on Debian \
                     `apt install clang lld wasi-libc libclang-rt-dev-wasm32`",
        })
    }
}

fn has_ziglang(project: &Project<'_>, python: &Program) -> bool {
    Call::new(project.programs, project.folder, python)
        .arguments(["-m", "ziglang", "version"])
        .output()
        .is_ok()
}

/// Lists the C sources in a folder, in alphabetical order.
fn sources(folder: &Path) -> Result<Vec<OsString>, BuildFailed> {
    let failed = |cause| BuildFailed::file("list", folder, cause);
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if Path::new(&name).extension() == Some("c".as_ref()) {
            sources.push(name);
        }
    }
    sources.sort();
    Ok(sources)
}

/// The stack size. zig's default of 16 MiB would be allocated for each call of the plugin.
const STACK: &str = "-Wl,-z,stack-size=262144";
/// The headers of Debian's wasi-libc. Without them, clang has no standard library for the target.
const DEBIAN_WASI_LIBC: &str = "/usr/include/wasm32-wasi";
