//! The contents of an archive, and writing it reproducibly.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::{
    guests::shipped_components,
    step::{self, read},
};

/// The generated files of an archive.
pub(super) struct Parts<'a> {
    pub(super) program: &'a Path,
    pub(super) components: &'a Path,
    pub(super) bill: Vec<u8>,
    pub(super) licences: Vec<u8>,
    /// The manual pages and the completions.
    pub(super) shell: Vec<ArchivedFile>,
}

#[derive(Clone, Debug)]
pub(super) struct ArchivedFile {
    /// The path below the archive's folder.
    pub(super) path: String,
    /// Whether the file is executable.
    pub(super) is_program: bool,
    pub(super) bytes: Vec<u8>,
}

impl Parts<'_> {
    /// Returns all files of the archive, except their checksums.
    pub(super) fn files(self) -> Result<Vec<ArchivedFile>> {
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
        for name in shipped_components()? {
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
const EMPTY_FOLDER: &str = "packaging/var-lib/keywright/";

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

/// Returns the paths of the documents and their pictures, the same as in the workspace, so that links between them work.
fn documents() -> Result<Vec<String>> {
    let is_document = |path: &PathBuf| {
        path.extension()
            .is_some_and(|end| end == "md" || end == "png")
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

/// Creates a compressed archive of one folder with these files, an empty folder, and `SHA256SUMS`, the checksums of the files. All
/// entries belong to root and have the same time, in seconds since 1970.
pub(super) fn write_archive(
    folder: &str,
    mut files: Vec<ArchivedFile>,
    mtime: u64,
) -> Result<Vec<u8>> {
    let sums = checksums(&mut files);
    files.push(sums);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let compressed = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut archive = Builder::new(compressed);
    let above = files.iter().flat_map(|file| folders_above(&file.path));
    let folders: BTreeSet<&str> = above.chain(folders_above(EMPTY_FOLDER)).collect();
    for path in folders {
        let mut header = header(EntryType::Directory, 0o755, mtime);
        header.set_size(0);
        archive
            .append_data(&mut header, format!("{folder}/{path}"), std::io::empty())
            .context("writing the archive")?;
    }
    for file in &files {
        let mode = if file.is_program { 0o755 } else { 0o644 };
        let mut header = header(EntryType::Regular, mode, mtime);
        header.set_size(u64::try_from(file.bytes.len()).unwrap_or(u64::MAX));
        let path = format!("{folder}/{}", file.path);
        archive
            .append_data(&mut header, path, file.bytes.as_slice())
            .context("writing the archive")?;
    }
    let compressed = archive.into_inner().context("writing the archive")?;
    compressed.finish().context("writing the archive")
}

/// Returns the parent folders of a path, outermost first, each with a final slash.
fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    let slashes = path.match_indices('/');
    slashes.filter_map(|(position, slash)| path.get(..position + slash.len()))
}

/// Computes the SHA-256 of bytes, in lower-case hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Returns the checksums of files in the format of `sha256sum`.
fn checksums(files: &mut [ArchivedFile]) -> ArchivedFile {
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let lines = files
        .iter()
        .map(|file| format!("{}  {}\n", digest(&file.bytes), file.path));
    ArchivedFile::plain("SHA256SUMS", lines.collect::<String>().into_bytes())
}

fn header(kind: EntryType, mode: u32, mtime: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(mtime);
    header
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use flate2::read::GzDecoder;
    use tar::Archive;

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
        let is_linking =
            |path: &&String| Path::new(path).extension().is_some_and(|end| end == "md");
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
        let expected = [&owner, "--chmod=0700", VAR_LIB, "/var/lib/"].map(str::to_owned);
        assert!(copies.contains(&expected.to_vec()), "{copies:?}");
        let expected = EMPTY_FOLDER.replacen(VAR_LIB, "/var/lib/", 1);
        assert_eq!(instructions("VOLUME "), [[expected]]);
        let position = |words: &str| text.find(words).unwrap();
        assert!(position(VAR_LIB) < position("\nVOLUME "));
    }

    const TIME: u64 = 1_700_000_000;

    fn files() -> Vec<ArchivedFile> {
        vec![
            ArchivedFile::plain("plugins/b.wasm", b"b".to_vec()),
            ArchivedFile {
                path: "bin/keywright".to_owned(),
                is_program: true,
                bytes: vec![7; 100_000],
            },
            ArchivedFile::plain("README.md", b"read".to_vec()),
            ArchivedFile::plain("host/docs/limits.md", b"read on".to_vec()),
            ArchivedFile::plain("plugins/a.wasm", b"a".to_vec()),
        ]
    }

    #[test]
    fn archive_does_not_depend_on_the_order_of_files() {
        let mut reversed = files();
        reversed.reverse();
        let bytes = write_archive("k-1", files(), TIME).unwrap();
        assert_eq!(bytes, write_archive("k-1", reversed, TIME).unwrap());
        assert_ne!(bytes, write_archive("k-1", files(), TIME + 1).unwrap());
    }

    #[test]
    fn entries_are_sorted_and_have_root_and_one_time() {
        let bytes = write_archive("k-1", files(), TIME).unwrap();
        let mut archive = Archive::new(GzDecoder::new(bytes.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.mtime().unwrap(), TIME);
            let path = entry.path().unwrap().display().to_string();
            found.push((path, header.mode().unwrap()));
        }
        let expected = [
            ("k-1/bin/", 0o755),
            ("k-1/host/", 0o755),
            ("k-1/host/docs/", 0o755),
            ("k-1/packaging/", 0o755),
            ("k-1/packaging/var-lib/", 0o755),
            ("k-1/packaging/var-lib/keywright/", 0o755),
            ("k-1/plugins/", 0o755),
            ("k-1/README.md", 0o644),
            ("k-1/SHA256SUMS", 0o644),
            ("k-1/bin/keywright", 0o755),
            ("k-1/host/docs/limits.md", 0o644),
            ("k-1/plugins/a.wasm", 0o644),
            ("k-1/plugins/b.wasm", 0o644),
        ];
        assert_eq!(found, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn checksums_pass_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("archive.tar.gz");
        fs::write(&file, write_archive("k-1", files(), TIME).unwrap()).unwrap();
        let run = |program: &str, arguments: &[&str], within: &str| {
            let mut command = Command::new(program);
            command
                .args(arguments)
                .current_dir(folder.path().join(within));
            assert!(
                command.status().unwrap().success(),
                "{program} {arguments:?}"
            );
        };
        run("tar", &["-xzf", "archive.tar.gz"], "");
        run(
            "sha256sum",
            &["--check", "--strict", "--quiet", "SHA256SUMS"],
            "k-1",
        );
        let listed = fs::read_to_string(folder.path().join("k-1/SHA256SUMS")).unwrap();
        assert_eq!(listed.lines().count(), files().len());
    }
}
