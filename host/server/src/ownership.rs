//! Files that another unprivileged user could replace.
//!
//! An administrator may run a command as root on the files of a server that runs as another user. If that server is compromised, it
//! must not gain root's privileges. So `keys rotate` does not write such files, and `check-config` does not trust them.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{self, Path, PathBuf},
};

use rustix::process::{Uid, geteuid};

use crate::started::{StartupContext, StartupError};

/// Returns the real path of a file, which need not exist, if the file and all folders above it belong to this user or root. Only this
/// path is safe to use: links in the original path can change.
pub(crate) fn require_own(path: &Path) -> Result<PathBuf, StartupError> {
    let real = path::absolute(path).and_then(|path| real_path(&path));
    let real = real.on_file("finding the path of", path)?;
    for part in real.ancestors() {
        if let Ok(found) = fs::symlink_metadata(part)
            && ![Uid::ROOT, geteuid()].contains(&Uid::from_raw(found.uid()))
        {
            let (part, owner) = (part.display(), found.uid());
            return Err(StartupError::new(format!(
                "{part} belongs to another user (id {owner}), who could replace files; run the command as that user, or change the owner"
            )));
        }
    }
    Ok(real)
}

fn real_path(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(cause), Some(folder), Some(name)) if cause.kind() == ErrorKind::NotFound => {
            Ok(real_path(folder)?.join(name))
        }
        (real, ..) => real,
    }
}
