//! The systemd unit, checked by systemd.

use std::{fs, path::PathBuf};

use keywright_harness::{Program, is_available, server_program};
use tempfile::TempDir;

use crate::layout::{example, packaged, packaging};

#[test]
fn the_unit_is_valid_for_systemd() {
    if !is_available("systemd-analyze") {
        return;
    }
    let folder = TempDir::new().unwrap();
    // The unit must refer to an existing program.
    let program = server_program().display().to_string();
    let unit = packaged("keywright.service").replace("/usr/bin/keywright", &program);
    let file = folder.path().join("keywright.service");
    fs::write(&file, unit).unwrap();
    let verified = Program::run("systemd-analyze", &["verify", "--man=no", &text(file)], "");
    assert!(verified.is_success, "{verified:?}");
    assert_eq!((verified.output + &verified.errors).trim(), "");
}

#[test]
fn the_unit_restricts_the_server() {
    if !is_available("systemd-analyze") {
        return;
    }
    let unit = text(packaging().join("keywright.service"));
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let arguments = ["security", "--offline=yes", "--no-pager", &threshold, &unit];
    let judged = Program::run("systemd-analyze", &arguments, "");
    assert!(judged.is_success, "{}", judged.output);
}

/// Maximum exposure of the service, in tenths of systemd's points: 0 is the best, 100 the worst.
const EXPOSURE_MAX: u8 = 20;

#[test]
fn the_unit_fits_the_example_configuration() {
    let unit = packaged("keywright.service");
    let example = example();
    let directive = |name: &str| -> String {
        let found = unit
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found
            .unwrap_or_else(|| panic!("{name} is not in the unit"))
            .to_owned()
    };
    let setting = |name: &str| -> u64 {
        let line = example.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let files: u64 = directive("LimitNOFILE").parse().unwrap();
    let (_, said) = unit
        .split_once("# More than server.connections_max plus ")
        .unwrap();
    let (said, _) = said.split_once(".\n").unwrap();
    let others: u64 = said.parse().unwrap();
    assert!(others >= OTHER_FILES);
    assert!(files >= setting("connections_max") + others);
    for (folder, directive) in [
        ("/var/lib/", directive("StateDirectory")),
        ("/var/log/", directive("LogsDirectory")),
        ("/etc/", directive("ConfigurationDirectory")),
    ] {
        let paths = example.match_indices(folder).map(|(at, _)| &example[at..]);
        for path in paths.filter(|path| !path.starts_with(&format!("{folder}{directive},"))) {
            assert!(path.starts_with(&format!("{folder}{directive}/")), "{path}");
        }
    }
    let (name, source) = directive("LoadCredential")
        .split_once(':')
        .map(|(name, source)| (name.to_owned(), source.to_owned()))
        .unwrap();
    assert!(example.contains(&format!(
        "file = \"/run/credentials/keywright.service/{name}\""
    )));
    assert!(example.contains(&source));
}

/// Open files other than client connections: three for each of the twenty default database connections, and 256.
const OTHER_FILES: u64 = 20 * 3 + 256;

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}
