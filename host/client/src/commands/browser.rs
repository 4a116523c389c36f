//! Opens a page in the user's browser.

use std::{
    env,
    process::{Command, Stdio},
};

/// Starts the first program that can be started: one of `BROWSER`, which separates several by colons, or `xdg-open`. Does not
/// wait for it.
pub(super) fn open(page: &str) -> bool {
    let named = env::var("BROWSER").unwrap_or_default();
    let named = named.split(':').filter(|program| !program.is_empty());
    named.chain(["xdg-open"]).any(|program| {
        let mut command = Command::new(program);
        command.arg(page);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    })
}
