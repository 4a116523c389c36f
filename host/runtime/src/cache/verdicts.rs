//! What was found out about the randomness of generators, so that a warm start looks at none.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use aws_lc_rs::hmac;

use super::{Cache, warn_of_replacement};
use crate::{
    component_file::hexadecimal,
    conformance::{EntropyReport, RULES_VERSION},
    refused::Refusal,
};

impl Cache {
    /// The report on a component with these settings: the one that is kept, or one that is made now and then kept.
    ///
    /// Who else asks for it meanwhile waits, in other processes too, so that servers that start together share the work.
    ///
    /// # Errors
    /// When none could be made. That is not kept.
    pub(crate) fn entropy_report(
        &self,
        component_digest: &str,
        settings: &str,
        make: impl FnOnce() -> Result<EntropyReport, Refusal>,
    ) -> Result<EntropyReport, Refusal> {
        let settings = self.settings_tag(settings);
        let name = format!("{component_digest}-{settings}-{RULES_VERSION}.entropy");
        let path = self.directory.join(&name);
        if let Some(report) = self.kept_report(&name, &path) {
            return Ok(report);
        }
        // Where there are no locks, several may do the same work.
        let lock = locked(&path.with_extension("entropy-lock")).ok();
        if let Some(report) = self.kept_report(&name, &path) {
            return Ok(report);
        }
        let report = make()?;
        let kept = serde_json::to_vec(&report)
            .map_err(io::Error::from)
            .and_then(|text| self.write(&name, &path, &text));
        if let Err(cause) = kept {
            tracing::warn!(path = %path.display(), %cause, "what was found out about a plugin could not be kept");
        }
        drop(lock);
        Ok(report)
    }

    fn kept_report(&self, name: &str, path: &Path) -> Option<EntropyReport> {
        let kept = match self.read(name, path) {
            Ok(kept) => kept?,
            Err(cause) => {
                warn_of_replacement(path, &cause.to_string());
                return None;
            }
        };
        serde_json::from_slice(&kept).ok()
    }

    /// What stands for settings in a name: they may hold secrets, so it can't be made without the server's key.
    fn settings_tag(&self, settings: &str) -> String {
        let tag = hmac::sign(&self.key, settings.as_bytes());
        hexadecimal(tag.as_ref().get(..8).unwrap_or_default())
    }
}

/// A file that nobody else has locked, locked until it is dropped.
fn locked(path: &Path) -> io::Result<File> {
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        thread,
    };

    use super::*;
    use crate::{conformance::EntropyFault, engine::new_engine};

    fn report(fault: Option<EntropyFault>) -> EntropyReport {
        EntropyReport {
            declared_bits: 128,
            drawn_bits: 256,
            values: 2_000,
            flipped_bits: 1_024,
            fault,
        }
    }

    fn cache(directory: &Path) -> Cache {
        let engine = new_engine(1, 1 << 20).unwrap();
        Cache::open(&directory.join("cache"), &[1; 32], &engine).unwrap()
    }

    #[test]
    fn a_report_is_made_once_for_each_component_and_its_settings() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path());
        let times_made = AtomicU32::new(0);
        for (digest, settings, times) in [
            ("d", "{}", 1),
            ("d", "{}", 1),
            ("d", r#"{"a":1}"#, 2),
            ("e", "{}", 3),
            ("d", "{}", 3),
        ] {
            let make = || {
                times_made.fetch_add(1, Ordering::SeqCst);
                Ok(report(Some(EntropyFault::Unrepeatable)))
            };
            let found = cache.entropy_report(digest, settings, make).unwrap();
            assert_eq!(found, report(Some(EntropyFault::Unrepeatable)));
            assert_eq!(times_made.load(Ordering::SeqCst), times);
        }
    }

    #[test]
    fn those_who_ask_together_share_the_work() {
        let directory = tempfile::tempdir().unwrap();
        let times_made = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let make = || {
                        times_made.fetch_add(1, Ordering::SeqCst);
                        Ok(report(None))
                    };
                    let cache = cache(directory.path());
                    assert!(cache.entropy_report("d", "{}", make).is_ok());
                });
            }
        });
        assert_eq!(times_made.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_changed_report_is_made_anew_and_a_failure_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path());
        let failed = || Err(Refusal::SettingsTooLarge);
        assert!(cache.entropy_report("d", "{}", failed).is_err());
        let bad = || Ok(report(Some(EntropyFault::Unrepeatable)));
        assert!(cache.entropy_report("d", "{}", bad).is_ok());
        let folder = fs::read_dir(directory.path().join("cache")).unwrap();
        let mut files = folder.map(|entry| entry.unwrap().path());
        let path = files
            .find(|path| path.extension() == Some("entropy".as_ref()))
            .unwrap();
        let text = fs::read(&path).unwrap();
        let forged = serde_json::to_vec(&report(None)).unwrap();
        fs::write(&path, [text.get(..32).unwrap(), &forged].concat()).unwrap();
        let found = cache.entropy_report("d", "{}", bad).unwrap();
        assert_eq!(found.fault, Some(EntropyFault::Unrepeatable));
    }
}
