//! Manual pages and shell completions.

use std::{fs, path::Path, process::Command};

use super::contents::ArchivedFile;
use crate::step::{self, StepFailed, output, read};

/// Returns the manual pages and completions, written by the program.
pub(super) fn files(program: &Path) -> Result<Vec<ArchivedFile>, StepFailed> {
    let mut files = Vec::new();
    for (shell, path) in COMPLETIONS {
        let script = output(Command::new(program).args(["completions", shell]))?;
        files.push(ArchivedFile::plain(path, script.into_bytes()));
    }
    let folder = step::workspace().join("target/dist/man");
    let failed = |cause| StepFailed::new(format!("reading {}", folder.display()), cause);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    step::run(Command::new(program).arg("man-pages").arg(&folder))?;
    for page in fs::read_dir(&folder).map_err(failed)? {
        let page = page.map_err(failed)?;
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
