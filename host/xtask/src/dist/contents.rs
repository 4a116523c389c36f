//! The contents of an archive.

use std::path::{Path, PathBuf};

use crate::{
    guests::SHIPPED,
    step::{self, StepFailed, read},
};

/// The generated files of an archive.
pub(super) struct Parts<'a> {
    /// The program.
    pub(super) program: &'a Path,
    /// The folder with the components.
    pub(super) components: &'a Path,
    /// The bill of materials.
    pub(super) bill: Vec<u8>,
    /// The licences.
    pub(super) licences: Vec<u8>,
    /// The manual pages and the completions.
    pub(super) shell: Vec<ArchivedFile>,
}

/// One file of an archive.
#[derive(Clone, Debug)]
pub(super) struct ArchivedFile {
    /// The path below the archive's folder.
    pub(super) path: String,
    /// Whether the file is executable.
    pub(super) is_program: bool,
    /// The contents.
    pub(super) bytes: Vec<u8>,
}

impl Parts<'_> {
    /// Returns all files of the archive, except their checksums.
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
        for path in documents()? {
            files.push(ArchivedFile::plain(&path, read(&root.join(&path))?));
        }
        for name in PACKAGED {
            let bytes = read(&root.join(PACKAGING).join(name))?;
            files.push(ArchivedFile::plain(&format!("packaging/{name}"), bytes));
        }
        Ok(files)
    }
}

impl ArchivedFile {
    /// Creates a file that is not executable.
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

/// An empty folder. The container file copies it, because it has no other way to create a folder.
pub(super) const EMPTY_FOLDER: &str = "packaging/var-lib/keywright/";

const LICENCES: &str = "THIRD-PARTY.txt";

/// Files in the archive that are not Markdown but belong to the documents.
const ATTACHMENTS: [&str; 10] = [
    "LICENSE",
    "examples/kubernetes/application.yaml",
    "examples/kubernetes/ca.yaml",
    "examples/kubernetes/client.yaml",
    "examples/kubernetes/cluster-store.yaml",
    "examples/kubernetes/namespace.yaml",
    "examples/kubernetes/store.yaml",
    "examples/kubernetes/token.yaml",
    "host/api/openapi.json",
    "host/kms/key_management.proto",
];

/// Returns the paths of the documents, the same as in the workspace, so that links between them work.
fn documents() -> Result<Vec<String>, StepFailed> {
    let is_document = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "md")
            && !path.starts_with("host/author/templates")
            && !path.starts_with("tests/keys")
    };
    let pages = step::tracked_files()?.into_iter().filter(is_document);
    let pages = pages.filter_map(|path| path.into_os_string().into_string().ok());
    Ok(pages.chain(ATTACHMENTS.map(str::to_owned)).collect())
}

/// The folder of the packaging files in the workspace.
const PACKAGING: &str = "host/server/packaging";

/// The packaging files.
const PACKAGED: &[&str] = &[
    "Containerfile",
    "keywright.service",
    "keywright.sysusers.conf",
    "keywright.toml",
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    /// The path of the empty folder that the container file copies to /var/lib.
    const VAR_LIB: &str = "packaging/var-lib/";

    #[test]
    fn archive_contains_all_packaging_files() {
        let folder = step::workspace().join(PACKAGING);
        let found: BTreeSet<_> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        let packaged = PACKAGED.iter().map(|&name| name.to_owned());
        assert_eq!(packaged.collect::<BTreeSet<_>>(), found);
    }

    #[test]
    fn links_in_documents_point_to_files_in_the_archive() {
        let root = step::workspace();
        let mut links = 0;
        let documents = documents().unwrap();
        let is_linking = |path: &&String| path.ends_with(".md");
        for document in documents.iter().filter(is_linking) {
            let text = fs::read_to_string(root.join(document)).unwrap();
            for target in text.split("](").skip(1) {
                let (target, _) = target.split_once(')').unwrap();
                let path = target.split('#').next().unwrap_or_default();
                if path.is_empty() || path.contains("://") {
                    continue;
                }
                let linked = resolved(document, path);
                assert!(documents.contains(&linked), "{document} links to {linked}");
                links += 1;
            }
        }
        assert!(links > documents.len(), "{links}");
    }

    /// Resolves a link in a document to a path from the root.
    fn resolved(document: &str, link: &str) -> String {
        let mut parts: Vec<&str> = document.split('/').collect();
        parts.pop();
        for part in link.split('/') {
            if part == ".." {
                parts.pop();
            } else {
                parts.push(part);
            }
        }
        parts.join("/")
    }

    #[test]
    fn container_file_needs_only_the_archive() {
        let file = step::workspace().join(PACKAGING).join("Containerfile");
        let text = fs::read_to_string(file).unwrap();
        let instructions = |name: &str| -> Vec<Vec<String>> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name));
            let words = lines.map(|line| line.split_whitespace().map(str::to_owned).collect());
            words.collect()
        };
        let copies = instructions("COPY ");
        assert!(!copies.is_empty());
        for copy in &copies {
            let words = copy.iter().filter(|word| !word.starts_with("--"));
            let words: Vec<&str> = words.map(String::as_str).collect();
            let (_, sources) = words.split_last().unwrap();
            for source in sources {
                let is_archived = [PROGRAM, BILL, LICENCES, "plugins", VAR_LIB].contains(source)
                    || documents().unwrap().iter().any(|path| path == source);
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

        // A new volume has the contents and the owner of the folder at its path. Files copied after VOLUME would be lost.
        let owner = format!("--chown={}", user[0]);
        let made = [&owner, "--chmod=0700", VAR_LIB, "/var/lib/"].map(str::to_owned);
        assert!(copies.contains(&made.to_vec()), "{copies:?}");
        let made = EMPTY_FOLDER.replacen(VAR_LIB, "/var/lib/", 1);
        assert_eq!(instructions("VOLUME "), [[made]]);
        let position = |words: &str| text.find(words).unwrap();
        assert!(position(VAR_LIB) < position("\nVOLUME "));
    }
}
