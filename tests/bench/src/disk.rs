//! Disks with counted and delayed flushes.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
    time::Duration,
};

use tempfile::TempDir;

use crate::{server, statistics::Outcome};

/// The behavior of disk flushes in processes started with [`Self::environment`].
pub(crate) struct Disk {
    folder: TempDir,
    longer: Duration,
}

impl Disk {
    /// Returns the real disk with this delay added to each flush. Needs a C compiler.
    pub(crate) fn with_flushes_longer_by(longer: Duration) -> Outcome<Self> {
        let disk = Self {
            folder: server::directory()?,
            longer,
        };
        let source = disk.folder.path().join("flush.c");
        fs::write(&source, include_str!("flush.c"))?;
        let compiled = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-o"])
            .args([&disk.library(), &source])
            .arg("-ldl")
            .status()?;
        if !compiled.success() {
            return Err("cc did not compile flush.c".into());
        }
        fs::write(disk.count(), 0_u64.to_ne_bytes())?;
        // For the user that runs PostgreSQL.
        fs::set_permissions(disk.folder.path(), Permissions::from_mode(0o755))?;
        fs::set_permissions(disk.count(), Permissions::from_mode(0o666))?;
        Ok(disk)
    }

    /// Returns the environment of a process that uses this disk.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("LD_PRELOAD", self.library().display().to_string()),
            ("FLUSH_COUNT_FILE", self.count().display().to_string()),
            ("FLUSH_LONGER_MICROS", self.longer.as_micros().to_string()),
        ]
    }

    /// Returns the number of completed flushes of all processes with this environment.
    pub(crate) fn flushes(&self) -> Outcome<u64> {
        let count = fs::read(self.count())?;
        let count = count.try_into();
        let count = count.map_err(|_| "the count of flushes is not an unsigned long")?;
        Ok(u64::from_ne_bytes(count))
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("flush.so")
    }

    fn count(&self) -> PathBuf {
        self.folder.path().join("flushes")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn flushes_are_counted_and_take_longer() {
        let longer = Duration::from_millis(20);
        let disk = Disk::with_flushes_longer_by(longer).unwrap();
        let begun = Instant::now();
        let synced = Command::new("sync")
            .arg(disk.folder.path().join("flush.c"))
            .envs(disk.environment())
            .status()
            .unwrap();
        assert!(synced.success());
        assert!(begun.elapsed() >= longer);
        assert_eq!(disk.flushes().unwrap(), 1);
    }
}
