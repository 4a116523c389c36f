//! The health of a PostgreSQL server: how the failure of one connection affects the others.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The observed state of a server, shared by all pools of connections to it.
#[derive(Clone, Default)]
pub(crate) struct ServerHealth {
    state: Arc<Mutex<HealthState>>,
}

#[derive(Default)]
struct HealthState {
    /// When a connection was last found dead or could not be opened.
    suspect_since: Option<Instant>,
    /// Connections that were opened before this moment are retired, because a write was refused then.
    retired_before: Option<Instant>,
    /// A later refusal, less than [`RETIREMENT_INTERVAL_MIN`] after `retired_before`. Replaces it after the interval.
    next_retirement: Option<Instant>,
}

impl ServerHealth {
    /// Marks all idle connections as suspect.
    pub(super) fn suspect_idle(&self) {
        self.state().suspect_idle(Instant::now());
    }

    /// Returns whether a connection that was last used this long ago needs a health check.
    pub(super) fn needs_check(&self, last_used: Duration) -> bool {
        self.state().needs_check(last_used, Instant::now())
    }

    /// Retires all open connections, because another server may be the primary now. At most once per
    /// [`RETIREMENT_INTERVAL_MIN`], in case reconnecting does not help.
    pub(super) fn retire_older(&self) {
        self.state().retire_older(Instant::now());
    }

    /// Returns whether a connection that was opened this long ago is retired.
    pub(super) fn retires(&self, age: Duration) -> bool {
        self.state().retires(age, Instant::now())
    }

    fn state(&self) -> MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HealthState {
    fn suspect_idle(&mut self, now: Instant) {
        self.suspect_since = Some(now);
    }

    fn needs_check(&self, last_used: Duration, now: Instant) -> bool {
        is_before(self.suspect_since, last_used, now) || last_used > UNCHECKED_IDLE_MAX
    }

    fn retire_older(&mut self, now: Instant) {
        self.next_retirement = Some(now);
        self.apply_next_retirement(now);
    }

    /// Applies a later refusal once the interval is over.
    fn apply_next_retirement(&mut self, now: Instant) {
        let is_recent = |since| now.saturating_duration_since(since) < RETIREMENT_INTERVAL_MIN;
        if !self.retired_before.is_some_and(is_recent) {
            self.retired_before = self.next_retirement.take().or(self.retired_before);
        }
    }

    fn retires(&mut self, age: Duration, now: Instant) -> bool {
        self.apply_next_retirement(now);
        is_before(self.retired_before, age, now) || age > AGE_MAX
    }
}

/// Returns whether an event this long ago happened before the moment.
fn is_before(moment: Option<Instant>, ago: Duration, now: Instant) -> bool {
    moment.is_some_and(|moment| ago > now.saturating_duration_since(moment))
}

/// The longest time that a connection may be idle without a health check.
const UNCHECKED_IDLE_MAX: Duration = Duration::from_secs(1);

/// The maximum age of a connection. A connection that only reads would never notice that its server became a standby.
const AGE_MAX: Duration = Duration::from_mins(10);

/// The shortest interval between two retirements of all connections.
const RETIREMENT_INTERVAL_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const INSTANT: Duration = Duration::from_nanos(1);

    #[test]
    fn suspect_and_long_idle_connections_need_a_health_check() {
        let health = ServerHealth::default();
        let now = Instant::now();
        let needs_check = |last_used| health.clone().state().needs_check(last_used, now);
        assert!(!needs_check(UNCHECKED_IDLE_MAX));
        assert!(needs_check(UNCHECKED_IDLE_MAX + INSTANT));
        health.state().suspect_idle(now);
        assert!(needs_check(UNCHECKED_IDLE_MAX));
        assert!(needs_check(INSTANT));
        assert!(!needs_check(Duration::ZERO));
    }

    #[test]
    fn old_connections_and_those_before_a_refused_write_are_retired() {
        let health = ServerHealth::default();
        let begun = Instant::now();
        let retires = |age, now| health.clone().state().retires(age, now);
        assert!(!retires(AGE_MAX, begun));
        assert!(retires(AGE_MAX + INSTANT, begun));
        health.state().retire_older(begun);
        assert!(retires(AGE_MAX, begun));
        assert!(retires(INSTANT, begun));
        assert!(!retires(Duration::ZERO, begun));
    }

    #[test]
    fn a_second_refused_write_retires_connections_after_the_interval() {
        let mut state = HealthState::default();
        let first = Instant::now();
        let again = first + RETIREMENT_INTERVAL_MIN.saturating_sub(INSTANT);
        state.retire_older(first);
        state.retire_older(again);
        // A connection that was opened in between.
        let opened = first + INSTANT;
        assert!(!state.retires(again - opened, again));
        assert_eq!(state.retired_before, Some(first));
        let later = first + RETIREMENT_INTERVAL_MIN;
        assert!(state.retires(later - opened, later));
        assert_eq!(state.retired_before, Some(again));
        assert_eq!(state.next_retirement, None);
        assert!(!state.retires(later - again, later));
    }
}
