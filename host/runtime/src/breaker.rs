//! Giving a plugin a rest that fails again and again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use keywright_core::ports::PluginFault;

/// Counts how often in a row the calls of one component, known by its digest, were cut short, those of each function by
/// themselves: what checks parameters may well work where what makes a value does not. After so many, nothing of the component
/// is called for a while: what does not work is refused at once, and takes no thread from what does.
///
/// After its rest the component is called again; the next call of the function that is cut short begins another rest, and one
/// that returns ends the matter.
pub(crate) struct Breaker {
    /// How many in a row are too many.
    faults_max: u32,
    rest: Duration,
    state: Mutex<State>,
}

/// The breaker of each component, by its digest.
pub(crate) struct Breakers {
    faults_max: u32,
    rest: Duration,
    by_digest: Mutex<BTreeMap<String, Arc<Breaker>>>,
}

impl Breakers {
    pub(crate) fn new(faults_max: u32, rest: Duration) -> Self {
        Self {
            faults_max,
            rest,
            by_digest: Mutex::default(),
        }
    }

    /// The breaker of a component, which all plugins with that component share.
    pub(crate) fn of(&self, digest: &str) -> Arc<Breaker> {
        // An entry is whole or not there.
        let mut by_digest = self
            .by_digest
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(Breaker::new(self.faults_max, self.rest));
        Arc::clone(by_digest.entry(digest.to_owned()).or_insert_with(fresh))
    }
}

#[derive(Default)]
struct State {
    faults_in_a_row: BTreeMap<&'static str, u32>,
    resting_until: Option<Instant>,
}

impl Breaker {
    pub(crate) fn new(faults_max: u32, rest: Duration) -> Self {
        Self {
            faults_max,
            rest,
            state: Mutex::default(),
        }
    }

    /// One that begins no rest, for who wants to see each fault.
    pub(crate) fn tireless() -> Self {
        Self::new(u32::MAX, Duration::ZERO)
    }

    /// How long nothing is to be called yet.
    pub(crate) fn rest_left(&self, now: Instant) -> Option<Duration> {
        let until = self.state().resting_until?;
        until
            .checked_duration_since(now)
            .filter(|left| !left.is_zero())
    }

    /// A call of a function has returned, whatever it said.
    pub(crate) fn returned(&self, function: &'static str) {
        self.state().faults_in_a_row.remove(function);
    }

    /// A call of a function has come to nothing. Returns the rest that begins with it, if one does.
    pub(crate) fn faulted(
        &self,
        function: &'static str,
        fault: PluginFault,
        now: Instant,
    ) -> Option<Duration> {
        if !is_cut_short(fault) {
            return None;
        }
        let mut state = self.state();
        let faults = state.faults_in_a_row.entry(function).or_default();
        *faults = faults.saturating_add(1);
        let are_too_many = *faults >= self.faults_max;
        let is_resting = state.resting_until.is_some_and(|until| now < until);
        if !are_too_many || is_resting {
            return None;
        }
        state.resting_until = Some(now + self.rest);
        Some(self.rest)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A count may be one short after a panic, which does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the host ended the call, rather than the guest with an answer of any kind.
fn is_cut_short(fault: PluginFault) -> bool {
    match fault {
        PluginFault::MemoryExceeded
        | PluginFault::StackExhausted
        | PluginFault::TimedOut
        | PluginFault::Trapped => true,
        PluginFault::InputTooLarge
        | PluginFault::Misconfigured
        | PluginFault::NotInstantiated
        | PluginFault::OutputMalformed
        | PluginFault::OutputTooLarge
        | PluginFault::Reported => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Duration = Duration::from_secs(30);

    #[test]
    fn one_fault_less_than_too_many_begins_no_rest_and_one_more_does() {
        let breaker = Breaker::new(3, REST);
        let now = Instant::now();
        for _ in 0..2 {
            assert_eq!(breaker.faulted("generate", PluginFault::Trapped, now), None);
            assert_eq!(breaker.rest_left(now), None);
        }
        assert_eq!(
            breaker.faulted("generate", PluginFault::TimedOut, now),
            Some(REST)
        );
        assert_eq!(breaker.rest_left(now), Some(REST));
        assert_eq!(
            breaker.rest_left(now + REST / 2),
            Some(REST / 2),
            "a rest runs down"
        );
        assert_eq!(breaker.rest_left(now + REST), None);
    }

    #[test]
    fn only_faults_of_one_function_in_a_row_count() {
        let breaker = Breaker::new(2, REST);
        let now = Instant::now();
        for _ in 0..5 {
            assert_eq!(breaker.faulted("generate", PluginFault::Trapped, now), None);
            breaker.returned("generate");
        }
        assert_eq!(breaker.faulted("generate", PluginFault::Trapped, now), None);
        assert_eq!(breaker.faulted("accept", PluginFault::Trapped, now), None);
        breaker.returned("normalize");
        let rest = breaker.faulted("generate", PluginFault::Trapped, now);
        assert_eq!(rest, Some(REST));
    }

    #[test]
    fn what_a_guest_answers_is_no_reason() {
        let breaker = Breaker::new(1, REST);
        for fault in [
            PluginFault::InputTooLarge,
            PluginFault::Misconfigured,
            PluginFault::NotInstantiated,
            PluginFault::OutputMalformed,
            PluginFault::OutputTooLarge,
            PluginFault::Reported,
        ] {
            assert_eq!(
                breaker.faulted("generate", fault, Instant::now()),
                None,
                "{fault}"
            );
        }
    }

    #[test]
    fn after_a_rest_one_fault_begins_another_and_one_answer_ends_it() {
        let breaker = Breaker::new(3, REST);
        let now = Instant::now();
        for _ in 0..3 {
            breaker.faulted("generate", PluginFault::MemoryExceeded, now);
        }
        let later = now + REST;
        assert_eq!(
            breaker.faulted("generate", PluginFault::StackExhausted, later),
            Some(REST)
        );
        let latest = later + REST;
        breaker.returned("generate");
        assert_eq!(
            breaker.faulted("generate", PluginFault::Trapped, latest),
            None
        );
        assert_eq!(breaker.rest_left(latest), None);
    }

    #[test]
    fn calls_that_were_under_way_do_not_make_a_rest_longer() {
        let breaker = Breaker::new(1, REST);
        let now = Instant::now();
        assert_eq!(
            breaker.faulted("generate", PluginFault::Trapped, now),
            Some(REST)
        );
        assert_eq!(
            breaker.faulted("generate", PluginFault::Trapped, now + REST / 2),
            None
        );
        assert_eq!(breaker.rest_left(now + REST / 2), Some(REST / 2));
    }
}
