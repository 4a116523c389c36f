//! Writes reproducible archives.

use std::{collections::BTreeSet, fmt::Write};

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::contents::{ArchivedFile, EMPTY_FOLDER};
use crate::step::StepFailed;

/// Creates a compressed archive of one folder with these files, an empty folder, and `SHA256SUMS`, the checksums of the files. All
/// entries belong to root and have the same time, in seconds since 1970.
pub(super) fn write_archive(
    folder: &str,
    mut files: Vec<ArchivedFile>,
    mtime: u64,
) -> Result<Vec<u8>, StepFailed> {
    let sums = checksums(&mut files);
    files.push(sums);
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let failed = |cause: std::io::Error| StepFailed::new("writing the archive", cause);
    let compressed = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut archive = Builder::new(compressed);
    let above = files.iter().flat_map(|file| folders_above(&file.path));
    let folders: BTreeSet<&str> = above.chain(folders_above(EMPTY_FOLDER)).collect();
    for path in folders {
        append_folder(&mut archive, &format!("{folder}/{path}"), mtime).map_err(failed)?;
    }
    for file in &files {
        let mode = if file.is_program { 0o755 } else { 0o644 };
        let mut header = header(EntryType::Regular, mode, mtime);
        header.set_size(u64::try_from(file.bytes.len()).unwrap_or(u64::MAX));
        let path = format!("{folder}/{}", file.path);
        archive
            .append_data(&mut header, path, file.bytes.as_slice())
            .map_err(failed)?;
    }
    let compressed = archive.into_inner().map_err(failed)?;
    compressed.finish().map_err(failed)
}

/// Returns the parent folders of a path, outermost first, each with a final slash.
fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    let slashes = path.match_indices('/');
    slashes.filter_map(|(position, slash)| path.get(..position + slash.len()))
}

/// Computes the SHA-256 of bytes, in lower-case hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut digits, byte| {
            // Writing to a string does not fail.
            let _ = write!(digits, "{byte:02x}");
            digits
        })
}

/// Returns the checksums of files in the format of `sha256sum`.
fn checksums(files: &mut [ArchivedFile]) -> ArchivedFile {
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let lines = files
        .iter()
        .map(|file| format!("{}  {}\n", digest(&file.bytes), file.path));
    ArchivedFile::plain("SHA256SUMS", lines.collect::<String>().into_bytes())
}

fn append_folder<W: std::io::Write>(
    archive: &mut Builder<W>,
    path: &str,
    mtime: u64,
) -> std::io::Result<()> {
    let mut header = header(EntryType::Directory, 0o755, mtime);
    header.set_size(0);
    archive.append_data(&mut header, path, std::io::empty())
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
        let mut turned = files();
        turned.reverse();
        let bytes = write_archive("k-1", files(), TIME).unwrap();
        assert_eq!(bytes, write_archive("k-1", turned, TIME).unwrap());
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
