//! How many bulk regenerations are under way.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The most bulk regenerations that are under way at once: each keeps all that it has made until it is written.
pub const BULK_REGENERATIONS_MAX: usize = 2;

/// The bulk regenerations that are under way.
#[derive(Clone, Debug, Default)]
pub struct BulkRegenerations(Arc<AtomicUsize>);

/// One of them, until it is dropped.
pub(super) struct UnderWay(Arc<AtomicUsize>);

impl BulkRegenerations {
    /// Begins one, unless there are as many as there may be.
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
    fn as_many_as_the_most_begin_and_the_next_when_one_has_ended() {
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
