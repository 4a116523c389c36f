//! Limiting concurrent bulk regenerations.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The maximum number of concurrent bulk regenerations. Each keeps all new versions in memory until it writes them.
pub const BULK_REGENERATIONS_MAX: usize = 2;

/// The bulk regenerations in progress.
#[derive(Clone, Debug, Default)]
pub struct BulkRegenerations(Arc<AtomicUsize>);

/// A bulk regeneration in progress, until it is dropped.
pub(super) struct UnderWay(Arc<AtomicUsize>);

impl BulkRegenerations {
    /// Starts a bulk regeneration, unless the maximum number is in progress.
    pub(super) fn begin(&self) -> Option<UnderWay> {
        let one_more = |count| (count < BULK_REGENERATIONS_MAX).then_some(count + 1);
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more)
            .ok()
            .map(|_| UnderWay(Arc::clone(&self.0)))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_starts_when_one_of_the_maximum_has_ended() {
        let regenerations = BulkRegenerations::default();
        let mut under_way: Vec<_> = (0..BULK_REGENERATIONS_MAX)
            .map(|_| regenerations.begin().unwrap())
            .collect();
        assert!(regenerations.clone().begin().is_none());
        under_way.pop();
        let last = regenerations.begin();
        assert!(last.is_some());
        assert!(regenerations.begin().is_none());
    }
}
