//! Cached reports of the entropy test, so that a warm start tests no generator.

use super::{Cache, REPORT, tag};
use crate::{
    conformance::{EntropyReport, RULES_VERSION},
    load_error::PluginRefusedError,
};

impl Cache {
    /// Returns the cached report on a component with these settings and declared bits, or calls `test` and caches the report.
    /// Concurrent callers run the test at the same time.
    ///
    /// # Errors
    /// The error of `test`, which is not cached.
    pub(crate) fn entropy_report(
        &self,
        component_digest: &str,
        settings: &str,
        declared_bits: u32,
        test: impl FnOnce() -> Result<EntropyReport, PluginRefusedError>,
    ) -> Result<EntropyReport, PluginRefusedError> {
        // Settings may contain secrets, so their tag is an HMAC under the server's key.
        let settings = tag(&self.key.0, settings.as_bytes());
        let name =
            format!("{component_digest}-{settings}-{declared_bits}-{RULES_VERSION}.{REPORT}");
        self.used.lock().insert(self.directory.join(&name));
        if let Some(report) = self.cached_report(&name) {
            return Ok(report);
        }
        let report = test()?;
        // Serializing a report can't fail.
        if let Ok(text) = serde_json::to_vec(&report) {
            self.store(&name, &text);
        }
        Ok(report)
    }

    fn cached_report(&self, name: &str) -> Option<EntropyReport> {
        keywright_json::read_bytes(&self.cached(name)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::Path,
        sync::atomic::{AtomicU32, Ordering},
    };

    use super::{super::CacheKey, *};
    use crate::{conformance::EntropyError, engine::new_engine};

    fn report(fault: Option<EntropyError>) -> EntropyReport {
        EntropyReport {
            declared_bits: 128,
            drawn_bits: 256,
            values: 2_000,
            flipped_bits: 1_024,
            faults: fault.into_iter().collect(),
        }
    }

    fn cache(directory: &Path, key: &CacheKey) -> Cache {
        let engine = new_engine(1, 1 << 20).unwrap();
        Cache::open(&directory.join("cache"), key, &engine).unwrap()
    }

    #[test]
    fn a_component_is_tested_once_per_settings_and_declared_bits() {
        let directory = tempfile::tempdir().unwrap();
        let key = CacheKey::new(&[1; 32]);
        let cache = cache(directory.path(), &key);
        let tests_run = AtomicU32::new(0);
        for (digest, settings, bits, times) in [
            ("d", "{}", 128, 1),
            ("d", "{}", 128, 1),
            ("d", r#"{"a":1}"#, 128, 2),
            ("e", "{}", 128, 3),
            ("d", "{}", 1, 4),
            ("d", "{}", 128, 4),
        ] {
            let make = || {
                tests_run.fetch_add(1, Ordering::SeqCst);
                Ok(report(Some(EntropyError::Unrepeatable)))
            };
            let found = cache.entropy_report(digest, settings, bits, make).unwrap();
            assert_eq!(found, report(Some(EntropyError::Unrepeatable)));
            assert_eq!(tests_run.load(Ordering::SeqCst), times);
        }
    }

    #[test]
    fn a_modified_report_is_recreated_and_a_failure_is_not_cached() {
        let directory = tempfile::tempdir().unwrap();
        let key = CacheKey::new(&[1; 32]);
        let cache = cache(directory.path(), &key);
        let failed = || Err(PluginRefusedError::SettingsTooLarge);
        assert!(cache.entropy_report("d", "{}", 128, failed).is_err());
        let bad = || Ok(report(Some(EntropyError::Unrepeatable)));
        assert!(cache.entropy_report("d", "{}", 128, bad).is_ok());
        let folder = fs::read_dir(directory.path().join("cache")).unwrap();
        let mut files = folder.map(|entry| entry.unwrap().path());
        let path = files
            .find(|path| path.extension() == Some("entropy".as_ref()))
            .unwrap();
        let text = fs::read(&path).unwrap();
        let forged = serde_json::to_vec(&report(None)).unwrap();
        fs::write(&path, [text.get(..32).unwrap(), &forged].concat()).unwrap();
        let found = cache.entropy_report("d", "{}", 128, bad).unwrap();
        assert_eq!(found.fault(), Some(&EntropyError::Unrepeatable));
    }
}
