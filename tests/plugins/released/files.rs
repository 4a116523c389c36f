//! Released files are never edited.

use std::{collections::BTreeSet, fs, path::Path};

use aws_lc_rs::digest::{SHA256, digest};
use keywright_harness::workspace;

use super::{KINDS, VERSIONS};
use crate::hexadecimal::hexadecimal;

/// The digests of all released files, as `sha256sum` writes and checks them.
const DIGESTS: &str = "wit/released/SHA256SUMS";

#[test]
fn released_packages_and_guests_are_unchanged() {
    let text = fs::read_to_string(workspace().join(DIGESTS)).unwrap();
    let mut known = BTreeSet::new();
    for line in text.lines() {
        let (expected, file) = line.split_once("  ").unwrap();
        let contents = fs::read(workspace().join(file)).unwrap();
        let found = hexadecimal(digest(&SHA256, &contents).as_ref());
        assert_eq!(found, expected, "{file} is released: it must stay as it is");
        known.insert(file.to_owned());
    }
    let mut released = BTreeSet::new();
    for folder in ["wit/released", "tests/guests/released"] {
        add_files(Path::new(folder), &mut released);
    }
    assert_eq!(known, released, "{DIGESTS} lists every released file");
}

/// Manifests are not included: their dependencies may be updated.
fn add_files(folder: &Path, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(workspace().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        let name = path.display().to_string();
        if workspace().join(&path).is_dir() {
            add_files(&path, files);
        } else if name != DIGESTS && !name.ends_with("Cargo.toml") {
            files.insert(name);
        }
    }
}

#[test]
fn released_versions_have_packages_and_all_guests() {
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(workspace().join(folder)).unwrap();
        let entries = entries.map(|entry| entry.unwrap());
        let folders = entries.filter(|entry| entry.path().is_dir());
        folders
            .map(|folder| folder.file_name().into_string().unwrap())
            .collect()
    };
    let (current, released) = VERSIONS.split_last().unwrap();
    assert_eq!(
        names("wit/released"),
        released
            .iter()
            .map(|version| version.number.to_owned())
            .collect()
    );
    assert_eq!(
        names("tests/guests/released"),
        released
            .iter()
            .map(|version| version.number.replace('.', "_"))
            .collect()
    );
    for version in &VERSIONS {
        assert_eq!(names(version.guests), KINDS.map(str::to_owned).into());
    }
    assert_eq!(
        (current.wit, current.guests),
        ("wit", "tests/guests/current")
    );
}
