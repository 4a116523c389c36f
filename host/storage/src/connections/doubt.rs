//! What one dead connection says of the others.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// When a connection to a server was last found dead, or none could be opened, for all pools of connections to it.
#[derive(Clone, Default)]
pub(crate) struct Doubt {
    since: Arc<Mutex<Option<Instant>>>,
}

impl Doubt {
    /// Doubts all connections that are idle.
    pub(super) fn cast(&self) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        *since = Some(Instant::now());
    }

    /// Whether a connection must be asked for a sign of life that was last used so long ago.
    pub(super) fn concerns(&self, last_used: Duration) -> bool {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let is_older = since.is_some_and(|since| last_used > since.elapsed());
        is_older || last_used > TRUSTED_IDLE_MAX
    }
}

/// How long a connection may have been idle that is not asked for a sign of life.
const TRUSTED_IDLE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_concerns_what_was_last_used_before_it_and_what_is_idle_for_long() {
        let doubt = Doubt::default();
        assert!(!doubt.concerns(TRUSTED_IDLE_MAX));
        assert!(doubt.concerns(TRUSTED_IDLE_MAX + Duration::from_nanos(1)));
        doubt.cast();
        assert!(doubt.concerns(TRUSTED_IDLE_MAX));
        assert!(!doubt.concerns(Duration::ZERO));
        assert!(doubt.clone().concerns(TRUSTED_IDLE_MAX));
    }
}
