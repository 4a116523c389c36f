//! Files that another unprivileged user could replace.
//!
//! An administrator may run a command as root on the files of a server that runs as another user. If that server is compromised, it
//! must not gain root's privileges. So `keys rotate` does not write such files, `check-config` does not trust them, and no command opens
//! a database if the server's user could move the folder in which SQLite creates files.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{self, Path, PathBuf},
};

use rustix::process::{Uid, geteuid};

use crate::started::{StartupContext, StartupError};

/// Returns the real path of a file, which need not exist, if only this user and root could put another file there: they own the file
/// and all folders above it. For root, no other user may write these folders either, except distant ones in which users can't replace
/// files of others. Only this path is safe to use: links in the original path can change.
pub(crate) fn require_own(path: &Path) -> Result<PathBuf, StartupError> {
    let real = path::absolute(path).and_then(|path| real_path(&path));
    let real = real.on_file("finding the path of", path)?;
    // If the part below is absent, any user who may write the folder could create it.
    let mut is_absent = false;
    for part in real.ancestors() {
        let found = match fs::symlink_metadata(part) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                is_absent = true;
                continue;
            }
            found => found.on_file("checking the owner of", part)?,
        };
        if ![Uid::ROOT, geteuid()].contains(&Uid::from_raw(found.uid())) {
            let (part, owner) = (part.display(), found.uid());
            return Err(StartupError::new(format!(
                "{part} belongs to another user (id {owner}), who could replace files; run the command as that user, or change the owner"
            )));
        }
        let is_sticky = found.mode() & STICKY != 0;
        let is_near = part == real || !real.is_dir() && Some(part) == real.parent();
        let is_protected = !found.is_dir() || is_sticky && !is_near && !is_absent;
        let of_others = if found.gid() == ROOT_GROUP {
            0o002
        } else {
            0o022
        };
        if geteuid().is_root() && found.mode() & of_others != 0 && !is_protected {
            return Err(StartupError::new(format!(
                "other users may write {}, and could replace files; run the command as the server's user, or change the mode of the folder",
                part.display()
            )));
        }
        is_absent = false;
    }
    Ok(real)
}

/// Returns the real path of a database, in whose folder SQLite may create other files. As root, refuses a folder that a user other
/// than root could move; its content may belong to another user. The caller must follow no link in the returned path.
pub(crate) fn require_fixed_folder(file: &Path) -> Result<PathBuf, StartupError> {
    let real = path::absolute(file).and_then(|path| real_path(&path));
    let real = real.on_file("finding the path of", file)?;
    if !geteuid().is_root() {
        return Ok(real);
    }
    let own = require_own(&real);
    match real.ancestors().nth(2) {
        Some(above) if own.is_err() => {
            let below = real.strip_prefix(above).unwrap_or(&real);
            Ok(require_own(above)?.join(below))
        }
        _ => own,
    }
}

/// The mode of a folder in which users can't replace files of others.
const STICKY: u32 = 0o1000;

const ROOT_GROUP: u32 = 0;

fn real_path(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(cause), Some(folder), Some(name)) if cause.kind() == ErrorKind::NotFound => {
            Ok(real_path(folder)?.join(name))
        }
        (real, ..) => real,
    }
}
