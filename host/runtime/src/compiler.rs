//! Compiles components in a process of their own.
//!
//! A component of a megabyte can take gigabytes of memory or hours to compile, and a fault of the compiler can end its process.
//! The process that compiles therefore has limits and a low priority. It has no secrets, and ends with the process that started it.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, ExitCode, ExitStatus, Stdio},
};

use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::{
        Resource, Rlimit, Signal, getrlimit, nice, set_parent_process_death_signal, setrlimit,
    },
};
use wasmtime::Engine;

use crate::{config::Compiler, engine::compiling_engine, load_error::PluginRefusedError};

/// The argument that makes a program call [`compile_component`]. The limit of processor time follows it.
pub const COMPILE_COMMAND: &str = "compile-component";
/// The maximum address space of a process that compiles, in bytes.
const MEMORY_BYTES_MAX: u64 = 3 << 30;
/// The maximum size of a compiled component, in bytes.
const COMPILED_BYTES_MAX: u64 = 256 << 20;
/// The number of threads that compile one component: more would need more memory.
const THREADS: &str = "4";
/// The increment of the niceness, which leaves the processors to requests.
const NICENESS: i32 = 10;

impl Compiler {
    /// Returns the compiled code of a component.
    pub(crate) fn compile(
        &self,
        engine: &Engine,
        bytes: &[u8],
    ) -> Result<Vec<u8>, PluginRefusedError> {
        let Self::Program { path, seconds_max } = self else {
            let compiled = engine.precompile_component(bytes);
            return compiled
                .map_err(|cause| PluginRefusedError::not_a_component(&format!("{cause:#}")));
        };
        let ran = run(path, *seconds_max, bytes);
        let (status, output) = ran.map_err(|source| PluginRefusedError::CompilerNotRun {
            program: path.clone(),
            source,
        })?;
        if output.len() as u64 > COMPILED_BYTES_MAX {
            return Err(PluginRefusedError::CompiledTooLarge {
                bytes_max: COMPILED_BYTES_MAX,
            });
        }
        match status.code() {
            Some(0) => Ok(output),
            Some(1) => Err(PluginRefusedError::not_a_component(
                &String::from_utf8_lossy(&output),
            )),
            _ if status.signal() == Some(Signal::XCPU.as_raw()) => {
                Err(PluginRefusedError::CompilationTooLong {
                    seconds_max: *seconds_max,
                })
            }
            _ => Err(PluginRefusedError::CompilerFailed {
                status,
                memory_bytes_max: MEMORY_BYTES_MAX,
            }),
        }
    }
}

/// Runs a process that compiles a component. Returns its status, and its output up to one byte more than [`COMPILED_BYTES_MAX`].
fn run(program: &Path, seconds_max: u64, bytes: &[u8]) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut input = File::from(memfd_create("component", MemfdFlags::CLOEXEC)?);
    input.write_all(bytes)?;
    input.rewind()?;
    let mut process = Command::new(program)
        .args([COMPILE_COMMAND, &seconds_max.to_string()])
        .env_clear()
        .env("RAYON_NUM_THREADS", THREADS)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut compiled = Vec::new();
    let output = process.stdout.take();
    // A process that writes more ends when its output is dropped.
    let read = output.map(|output| {
        output
            .take(COMPILED_BYTES_MAX + 1)
            .read_to_end(&mut compiled)
    });
    let status = process.wait()?;
    read.transpose()?;
    Ok((status, compiled))
}

/// Compiles the component on standard input, with limits for this process. Writes the compiled code to standard output; if it
/// fails, the error.
pub fn compile_component(seconds_max: u64) -> ExitCode {
    let (status, output) = match limit(seconds_max)
        .map_err(wasmtime::Error::from)
        .and_then(|()| compiled_input())
    {
        Ok(code) => (ExitCode::SUCCESS, code),
        Err(cause) => (ExitCode::FAILURE, format!("{cause:#}").into_bytes()),
    };
    match io::stdout().write_all(&output) {
        Ok(()) => status,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Limits this process, and ends it with the process that started it.
fn limit(seconds_max: u64) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    nice(NICENESS)?;
    for (resource, max) in [
        (Resource::As, MEMORY_BYTES_MAX),
        (Resource::Cpu, seconds_max),
    ] {
        let Rlimit { current, maximum } = getrlimit(resource);
        let current = Some(current.map_or(max, |current| current.min(max)));
        setrlimit(resource, Rlimit { current, maximum })?;
    }
    Ok(())
}

fn compiled_input() -> wasmtime::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    compiling_engine()?.precompile_component(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::new_engine;

    /// Returns the error for a component that this program compiles.
    fn refused_by(program: &str) -> PluginRefusedError {
        let compiler = Compiler::Program {
            path: program.into(),
            seconds_max: 7,
        };
        let engine = new_engine(1, 1 << 20).unwrap();
        compiler.compile(&engine, &vec![0; 1 << 20]).unwrap_err()
    }

    #[test]
    fn a_program_that_does_not_compile_is_an_error() {
        // `yes` repeats its arguments until the pipe is closed.
        let endless = refused_by("yes");
        assert!(
            matches!(endless, PluginRefusedError::CompiledTooLarge { bytes_max } if bytes_max == COMPILED_BYTES_MAX)
        );
        let failing = refused_by("false");
        assert!(matches!(failing, PluginRefusedError::NotAComponent(_)));
        let missing = refused_by("/nonexistent");
        assert_eq!(
            missing.to_string(),
            "could not run the program that compiles it, /nonexistent"
        );
    }
}
