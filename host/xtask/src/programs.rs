//! Other programs that tests let judge what the server makes.

use std::process::Command;

/// Installs the programs that are missing, where that can be done: on Debian, as root. Where it can't, the tests that need
/// them say that they are skipped.
pub(crate) fn ensure() {
    for (program, package) in PROGRAMS {
        if is_installed(program) {
            continue;
        }
        eprintln!("xtask: installing {package} for {program}");
        let installed = Command::new("apt-get")
            .args(["install", "--yes", "--no-install-recommends", package])
            .status();
        if !installed.is_ok_and(|status| status.success()) {
            eprintln!(
                "xtask: {program} is not there and can't be installed; tests that need it are skipped"
            );
        }
    }
}

/// Each program, with Debian's package of it.
const PROGRAMS: [(&str, &str); 2] = [("openssl", "openssl"), ("ssh-keygen", "openssh-client")];

fn is_installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}
