//! The list of tested components that a release embeds.
//!
//! The entropy test of a component takes seconds, and its outcome is known when the release is built. So the release build
//! tests the shipped components, fails if one fails, and compiles their digests into the program. A component with another
//! digest is tested when a server loads it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{guests::shipped_components, step};

/// Builds a program that embeds the list of the shipped components. `build` is called with the environment
/// variable for the compiler.
///
/// The program itself tests the components, so it is built again with the list unless an earlier build left the same
/// list.
pub(crate) fn build_with_list(
    components: &Path,
    build: impl Fn((&str, &str)) -> Result<PathBuf>,
) -> Result<PathBuf> {
    let list_file = components.join(LIST_FILE);
    let mut list = fs::read_to_string(&list_file).unwrap_or_default();
    loop {
        let program = build((VARIABLE, &list))?;
        let tested = tested(&program, components)?;
        if tested == list {
            return Ok(program);
        }
        fs::write(&list_file, &tested)
            .with_context(|| format!("writing {}", list_file.display()))?;
        list = tested;
    }
}

/// Removes the list that an earlier build left.
pub(crate) fn remove_list(components: &Path) -> Result<()> {
    let list_file = components.join(LIST_FILE);
    match fs::remove_file(&list_file) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(cause).with_context(|| format!("removing {}", list_file.display()))
        }
        _ => Ok(()),
    }
}

/// Tests the components that are not on the program's embedded list, and returns the list of all tested components.
fn tested(program: &Path, components: &Path) -> Result<String> {
    eprintln!("xtask: testing the randomness of the shipped plugins");
    let files = shipped_components()?;
    let files = files.iter().map(|name| components.join(name));
    let mut command = Command::new(program);
    command.args(["plugin", "tested"]).args(files);
    let tested = step::output(&mut command)?;
    Ok(tested.trim_end().to_owned())
}

/// The variable that the server's `plugins.rs` reads when it is compiled.
const VARIABLE: &str = "KEYWRIGHT_TESTED_COMPONENTS";

const LIST_FILE: &str = "tested.txt";

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_program_is_rebuilt_until_it_embeds_the_list_it_prints() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "#!/bin/sh\necho 2 abc\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let embedded = RefCell::new(Vec::new());
        let build = |(variable, list): (&str, &str)| {
            assert_eq!(variable, VARIABLE);
            embedded.borrow_mut().push(list.to_owned());
            Ok(program.clone())
        };
        build_with_list(folder.path(), build).unwrap();
        build_with_list(folder.path(), build).unwrap();
        remove_list(folder.path()).unwrap();
        build_with_list(folder.path(), build).unwrap();
        assert_eq!(embedded.take(), ["", "2 abc", "2 abc", "", "2 abc"]);
    }

    #[test]
    fn a_component_that_fails_its_test_fails_the_build() {
        let folder = tempfile::tempdir().unwrap();
        let build = |_: (&str, &str)| Ok(PathBuf::from("false"));
        assert!(build_with_list(folder.path(), build).is_err());
    }
}
