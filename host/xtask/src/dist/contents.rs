//! What is in an archive.

use std::path::Path;

use super::read;
use crate::{
    guests::SHIPPED,
    step::{self, StepFailed},
};

/// What is made for the archive, and is not in the workspace.
pub(super) struct Parts<'a> {
    /// The program.
    pub(super) program: &'a Path,
    /// The folder with the components.
    pub(super) components: &'a Path,
    /// What the program and the plugins are made of.
    pub(super) bill: Vec<u8>,
    /// The licences of that.
    pub(super) licences: Vec<u8>,
    /// The manual pages and the completions.
    pub(super) shell: Vec<ArchivedFile>,
}

/// One file of an archive.
#[derive(Clone, Debug)]
pub(super) struct ArchivedFile {
    /// Its path below the archive's folder.
    pub(super) path: String,
    /// Whether it is a program.
    pub(super) is_program: bool,
    /// What is in it.
    pub(super) bytes: Vec<u8>,
}

impl Parts<'_> {
    /// Everything that is in the archive, but for the checksums of it.
    pub(super) fn files(self) -> Result<Vec<ArchivedFile>, StepFailed> {
        let root = step::workspace();
        let mut files = vec![
            ArchivedFile {
                path: PROGRAM.to_owned(),
                is_program: true,
                bytes: read(self.program)?,
            },
            ArchivedFile::plain(BILL, self.bill),
            ArchivedFile::plain(LICENCES, self.licences),
        ];
        for plugin in SHIPPED {
            let name = format!("{plugin}.wasm");
            let bytes = read(&self.components.join(&name))?;
            files.push(ArchivedFile::plain(&format!("plugins/{name}"), bytes));
        }
        files.extend(self.shell);
        for (path, source) in COPIED {
            files.push(ArchivedFile::plain(path, read(&root.join(source))?));
        }
        Ok(files)
    }
}

impl ArchivedFile {
    /// A file that is no program.
    pub(super) fn plain(path: &str, bytes: Vec<u8>) -> Self {
        Self {
            path: path.to_owned(),
            is_program: false,
            bytes,
        }
    }
}

const PROGRAM: &str = "bin/keywright";
const BILL: &str = "keywright.cdx.json";
const LICENCES: &str = "THIRD-PARTY.txt";

/// What is copied of the workspace: its path in the archive, and its path here.
const COPIED: [(&str, &str); 7] = [
    ("CONFIGURATION.md", "host/server/CONFIGURATION.md"),
    ("LICENSE", "LICENSE"),
    ("README.md", "README.md"),
    (
        "packaging/Containerfile",
        "host/server/packaging/Containerfile",
    ),
    (
        "packaging/keywright.service",
        "host/server/packaging/keywright.service",
    ),
    (
        "packaging/keywright.sysusers.conf",
        "host/server/packaging/keywright.sysusers.conf",
    ),
    (
        "packaging/keywright.toml",
        "host/server/packaging/keywright.toml",
    ),
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    #[test]
    fn everything_that_is_packaged_is_in_the_archive() {
        let folder = step::workspace().join("host/server/packaging");
        let found: BTreeSet<_> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let packaged = COPIED.iter();
        let packaged = packaged.filter_map(|(path, _)| path.strip_prefix("packaging/"));
        assert_eq!(packaged.map(str::to_owned).collect::<BTreeSet<_>>(), found);
    }

    #[test]
    fn the_container_file_needs_nothing_but_the_archive() {
        let file = step::workspace().join("host/server/packaging/Containerfile");
        let text = fs::read_to_string(file).unwrap();
        let instructions = |name: &str| -> Vec<Vec<String>> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name));
            let words = lines.map(|line| line.split_whitespace().map(str::to_owned).collect());
            words.collect()
        };
        let copies = instructions("COPY ");
        assert!(!copies.is_empty());
        for copy in copies {
            let (_, sources) = copy.split_last().unwrap();
            for source in sources {
                let is_archived = [PROGRAM, BILL, LICENCES, "plugins"].contains(&source.as_str())
                    || COPIED.iter().any(|(path, _)| path == source);
                assert!(is_archived, "{source}");
            }
        }
        for name in ["RUN ", "ADD "] {
            assert!(instructions(name).is_empty(), "{name}");
        }
        let users = instructions("USER ");
        let [user] = users.as_slice() else {
            panic!("{users:?}");
        };
        let ids: Vec<u32> = user[0].split(':').map(|id| id.parse().unwrap()).collect();
        assert!(ids.iter().all(|id| *id != 0), "{ids:?}");
    }
}
