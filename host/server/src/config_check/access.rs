//! Checks the access to files without changing them.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::Access;

use super::Findings;

/// Checks that the file is writable, or that it can be created in an existing folder.
pub(super) fn check_writable_file(setting: &str, path: &Path, findings: &mut Findings) {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            findings.mistake(setting, format!("{shown} is a folder"));
        }
        Ok(_) => check_access(setting, path, Access::READ_OK | Access::WRITE_OK, findings),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            let folder = folder_of(path);
            if folder.is_dir() {
                check_access(
                    setting,
                    &folder,
                    Access::WRITE_OK | Access::EXEC_OK,
                    findings,
                );
            } else {
                let folder = folder.display();
                findings.mistake(
                    setting,
                    format!("there is no folder {folder} to make it in"),
                );
            }
        }
        Err(cause) => findings.mistake(setting, format!("can't access {shown}: {cause}")),
    }
}

/// Checks that only this user can access the folder, or that it can be created.
pub(super) fn check_private_folder(setting: &str, path: &Path, findings: &mut Findings) {
    let shown = path.display();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            let mut above = path.ancestors().skip(1).map(named);
            let Some(nearest) = above.find(|folder| folder.exists()) else {
                return;
            };
            let access = Access::WRITE_OK | Access::EXEC_OK;
            return check_access(setting, &nearest, access, findings);
        }
        Err(cause) => {
            return findings.mistake(setting, format!("can't access {shown}: {cause}"));
        }
    };
    // The check may run as root, but the server as another user.
    let user = rustix::process::geteuid();
    if !metadata.is_dir() {
        findings.mistake(setting, format!("{shown} is not a folder"));
    } else if metadata.uid() != user.as_raw() && !user.is_root() {
        findings.mistake(
            setting,
            format!("{shown} must belong to the user that the server runs as"),
        );
    } else if metadata.mode() & 0o077 != 0 {
        findings.mistake(
            setting,
            format!(
                "{shown} must have the mode 0700, so that no other user can read it or write to it"
            ),
        );
    }
}

/// Warns if all users can access a file that contains a secret.
pub(super) fn warn_if_world_accessible(setting: &str, path: &Path, findings: &mut Findings) {
    if fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o007 != 0) {
        findings.warning(
            setting,
            format!(
                "every user of this machine may read or write {}: `chmod o= FILE`",
                path.display()
            ),
        );
    }
}

fn check_access(setting: &str, path: &Path, access: Access, findings: &mut Findings) {
    if let Err(cause) = rustix::fs::access(path, access) {
        let cause = io::Error::from(cause);
        findings.mistake(
            setting,
            format!("{} can't be written: {cause}", path.display()),
        );
    }
}

fn folder_of(path: &Path) -> PathBuf {
    named(path.parent().unwrap_or(path))
}

/// Returns the folder, or `.` if it is empty.
fn named(folder: &Path) -> PathBuf {
    if folder.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        folder.to_owned()
    }
}
