//! `cargo xtask stats`: the size of the workspace.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::step;

/// Prints the numbers of lines and files.
pub(crate) fn stats() -> Result<()> {
    let mut lines = Lines::default();
    let mut files = 0;
    for path in step::tracked_files()? {
        if path.extension() != Some("rs".as_ref()) {
            continue;
        }
        let text = fs::read_to_string(step::workspace().join(&path))
            .with_context(|| path.display().to_string())?;
        files += 1;
        lines.add(&path, &text);
    }
    println!("production lines  {}", lines.production);
    println!("test lines        {}", lines.tests);
    println!("Rust files        {files}");
    Ok(())
}

/// Lines of Rust.
#[derive(Default)]
struct Lines {
    production: usize,
    tests: usize,
}

impl Lines {
    /// Counts the lines of a file. A `tests` module at the end of a file, `tests.rs` files, and all files in `tests` folders
    /// count as tests.
    fn add(&mut self, path: &Path, text: &str) {
        let lines = text.lines().count();
        let is_test = path
            .iter()
            .any(|part| part == "tests" || part == "tests.rs");
        let production = match text.split_once("#[cfg(test)]\nmod tests {") {
            _ if is_test => 0,
            Some((code, _)) => code.lines().count(),
            None => lines,
        };
        self.production += production;
        self.tests += lines - production;
    }
}
