//! The circuit breaker: disables a plugin for an actor whose calls keep failing.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use keywright_core::{
    permission::Actor,
    ports::{PluginCallError, PluginFaultError, PluginState},
};
use parking_lot::Mutex;

use crate::call::{CIRCUIT_OPEN, Plugin, not_called};

/// The maximum number of actors tracked per component. Beyond it, the actor with the least recent fault is dropped.
const ACTORS_MAX: usize = 1_024;

/// Counts consecutive faults of one component, separately for each function: `normalize` may work while `generate` fails.
/// A fault is a call that the host ended.
///
/// The input may cause a fault, so it counts against its actor: after `faults_max` consecutive faults, the circuit opens for that
/// actor. There is no circuit for all actors, because colluding actors could open it.
///
/// After `open_time`, calls are permitted again. The next fault reopens the circuit; a returning call resets it.
pub(crate) struct Breaker {
    /// The number of consecutive faults that opens the circuit.
    faults_max: u32,
    open_time: Duration,
    /// The actors with faults.
    actors: Mutex<HashMap<Option<Actor>, ActorRecord>>,
}

/// The breakers of all components, by digest.
pub(crate) struct Breakers {
    faults_max: u32,
    open_time: Duration,
    by_digest: Mutex<BTreeMap<String, Arc<Breaker>>>,
}

impl Breakers {
    pub(crate) fn new(faults_max: u32, open_time: Duration) -> Self {
        Self {
            faults_max,
            open_time,
            by_digest: Mutex::default(),
        }
    }

    /// Returns the breaker of a component. All plugins with that component share it.
    pub(crate) fn of(&self, digest: &str) -> Arc<Breaker> {
        // A panic can't leave a partial entry.
        let mut by_digest = self.by_digest.lock();
        let fresh = || Arc::new(Breaker::new(self.faults_max, self.open_time));
        Arc::clone(by_digest.entry(digest.to_owned()).or_insert_with(fresh))
    }
}

/// One call, as the breaker counts it.
struct Call {
    /// The calling actor; `None` for the server itself.
    actor: Option<Actor>,
    function: &'static str,
}

/// The record of one actor's faults.
struct ActorRecord {
    faulted_at: Instant,
    open_until: Option<Instant>,
    consecutive_faults: BTreeMap<&'static str, u32>,
}

impl Breaker {
    fn new(faults_max: u32, open_time: Duration) -> Self {
        Self {
            faults_max,
            open_time,
            actors: Mutex::default(),
        }
    }

    /// Returns the time until the circuit closes for an actor; `None` if it is closed.
    fn open_for(&self, actor: Option<&Actor>, now: Instant) -> Option<Duration> {
        let open_until = self.actors.lock().get(&actor.cloned())?.open_until?;
        let open_for = open_until.checked_duration_since(now);
        open_for.filter(|left| !left.is_zero())
    }

    /// Returns the state of one of the component's plugins, without the fields of a generator.
    pub(crate) fn state(&self, plugin: &Plugin, actor: &Actor) -> PluginState {
        let (calls, faults) = plugin.measurements.counts();
        PluginState {
            identity: plugin.identity.clone(),
            credential_type: None,
            entropy_bits_min: None,
            calls,
            faults,
            circuit_open_for: self.open_for(Some(actor), Instant::now()),
        }
    }

    /// Records that a call returned, whatever its result.
    fn returned(&self, call: &Call) {
        if let Some(record) = self.actors.lock().get_mut(&call.actor) {
            record.consecutive_faults.remove(call.function);
        }
    }

    /// Records a failed call. Returns whether this fault opens the circuit.
    fn faulted(&self, call: &Call, fault: PluginFaultError, now: Instant) -> bool {
        if !is_ended_by_host(fault) {
            return false;
        }
        let mut actors = self.actors.lock();
        if actors.len() >= ACTORS_MAX && !actors.contains_key(&call.actor) {
            let oldest = actors.iter().min_by_key(|(_, record)| record.faulted_at);
            if let Some(oldest) = oldest.map(|(actor, _)| actor.clone()) {
                actors.remove(&oldest);
            }
        }
        let record = actors.entry(call.actor.clone()).or_insert(ActorRecord {
            faulted_at: now,
            open_until: None,
            consecutive_faults: BTreeMap::new(),
        });
        record.faulted_at = now;
        let faults = record.consecutive_faults.entry(call.function).or_default();
        *faults = faults.saturating_add(1);
        let is_closed = record.open_until.is_none_or(|until| until <= now);
        let opens = *faults >= self.faults_max && is_closed;
        if opens {
            record.open_until = Some(now + self.open_time);
        }
        opens
    }
}

/// A call of a plugin's guest. Its outcome counts even if the caller disconnects, so that disconnecting does not hide faults.
pub(crate) struct Attempt {
    breaker: Arc<Breaker>,
    call: Call,
}

impl Attempt {
    /// Prepares a call of a function.
    ///
    /// # Errors
    /// [`PluginCallError::CircuitOpen`] if the circuit is open. This records the metric.
    pub(crate) fn begin(
        plugin: &Plugin,
        breaker: &Arc<Breaker>,
        actor: Option<&Actor>,
        function: &'static str,
    ) -> Result<Self, PluginCallError> {
        let attempt = Self {
            breaker: Arc::clone(breaker),
            call: Call {
                actor: actor.cloned(),
                function,
            },
        };
        attempt.check(plugin)?;
        Ok(attempt)
    }

    /// Makes the call and measures it.
    ///
    /// # Errors
    /// [`PluginCallError::CircuitOpen`] if the circuit has opened in the meantime, or the error of `work`.
    pub(crate) fn make<T>(
        &self,
        plugin: &Plugin,
        work: impl FnOnce() -> Result<T, PluginCallError>,
    ) -> Result<T, PluginCallError> {
        self.check(plugin)?;
        let name = &plugin.identity.name;
        let outcome = plugin.measurements.measured(name, self.call.function, work);
        match &outcome {
            Err(PluginCallError::Faulted {
                fault: PluginFaultError::InputTooLarge(_) | PluginFaultError::NotInstantiated,
                ..
            }) => {}
            Err(PluginCallError::Faulted { fault, .. }) => {
                plugin.measurements.faulted();
                self.faulted(plugin, *fault);
            }
            _ => self.breaker.returned(&self.call),
        }
        outcome
    }

    fn check(&self, plugin: &Plugin) -> Result<(), PluginCallError> {
        match self
            .breaker
            .open_for(self.call.actor.as_ref(), Instant::now())
        {
            Some(retry_after) => {
                not_called(&plugin.identity.name, self.call.function, CIRCUIT_OPEN);
                Err(PluginCallError::CircuitOpen {
                    plugin: plugin.identity.name.clone(),
                    retry_after,
                })
            }
            None => Ok(()),
        }
    }

    fn faulted(&self, plugin: &Plugin, fault: PluginFaultError) {
        if self.breaker.faulted(&self.call, fault, Instant::now()) {
            tracing::error!(
                plugin.name = plugin.identity.name,
                plugin.digest = plugin.identity.digest,
                actor = self.call.actor.as_ref().map(Actor::as_str),
                disabled_seconds = self.breaker.open_time.as_secs(),
                "the plugin's component kept failing for one actor: temporarily disabled it for this actor"
            );
        }
    }
}

/// Returns whether the host ended the call. Otherwise, the guest returned a result or an error, or was not called.
fn is_ended_by_host(fault: PluginFaultError) -> bool {
    match fault {
        PluginFaultError::MemoryExceeded(_)
        | PluginFaultError::StackExhausted
        | PluginFaultError::TimedOut(_)
        | PluginFaultError::Trapped => true,
        PluginFaultError::InputTooLarge(_)
        | PluginFaultError::Misconfigured
        | PluginFaultError::NotInstantiated
        | PluginFaultError::OutputMalformed
        | PluginFaultError::OutputTooLarge(_)
        | PluginFaultError::Reported => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN_TIME: Duration = Duration::from_secs(30);

    /// A breaker that opens at the third fault, with a fixed clock.
    struct Scene {
        breaker: Breaker,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                breaker: Breaker::new(3, OPEN_TIME),
                now: Instant::now(),
            }
        }

        fn call(actor: &str, function: &'static str) -> Call {
            Call {
                actor: Some(Actor::of_lookup(actor)),
                function,
            }
        }

        /// Records a call of `generate` that traps.
        fn trap(&self, actor: &str) -> bool {
            let call = Self::call(actor, "generate");
            self.breaker
                .faulted(&call, PluginFaultError::Trapped, self.now)
        }

        fn open_for(&self, actor: &str) -> Option<Duration> {
            self.breaker
                .open_for(Some(&Actor::of_lookup(actor)), self.now)
        }
    }

    #[test]
    fn faults_of_one_actor_open_the_circuit_only_for_that_actor() {
        let mut scene = Scene::new();
        for _ in 0..2 {
            assert!(!scene.trap("a"));
            assert_eq!(scene.open_for("a"), None);
        }
        assert!(scene.trap("a"));
        assert_eq!(scene.open_for("a"), Some(OPEN_TIME));
        for _ in 0..100 {
            assert!(!scene.trap("a"));
        }
        assert_eq!(scene.open_for("b"), None);
        scene.now += OPEN_TIME / 2;
        assert_eq!(scene.open_for("a"), Some(OPEN_TIME / 2));
        scene.now += OPEN_TIME / 2;
        assert_eq!(scene.open_for("a"), None);
        assert!(scene.trap("a"), "once more");
    }

    #[test]
    fn only_consecutive_faults_of_one_function_count() {
        let scene = Scene::new();
        for _ in 0..5 {
            assert!(!scene.trap("a"));
            assert!(!scene.trap("a"));
            scene.breaker.returned(&Scene::call("a", "generate"));
        }
        let accept = Scene::call("a", "accept");
        for _ in 0..2 {
            assert!(!scene.trap("a"));
            let opens = scene
                .breaker
                .faulted(&accept, PluginFaultError::Trapped, scene.now);
            assert!(!opens);
        }
        assert!(scene.trap("a"));
    }

    #[test]
    fn faults_that_the_guest_reports_do_not_count() {
        let scene = Scene::new();
        let call = Scene::call("a", "generate");
        for fault in [
            PluginFaultError::InputTooLarge(1),
            PluginFaultError::Misconfigured,
            PluginFaultError::NotInstantiated,
            PluginFaultError::OutputMalformed,
            PluginFaultError::OutputTooLarge(1),
            PluginFaultError::Reported,
        ] {
            for _ in 0..3 {
                let opens = scene.breaker.faulted(&call, fault, scene.now);
                assert!(!opens, "{fault}");
            }
        }
    }

    #[test]
    fn at_most_1024_actors_are_tracked() {
        let mut scene = Scene::new();
        for number in 0..=ACTORS_MAX {
            scene.trap(&number.to_string());
            scene.now += Duration::from_secs(1);
        }
        assert_eq!(scene.breaker.actors.lock().len(), ACTORS_MAX);
        let is_known = |number: usize| {
            let actor = Actor::of_lookup(&number.to_string());
            scene.breaker.actors.lock().contains_key(&Some(actor))
        };
        assert!(!is_known(0) && is_known(1) && is_known(ACTORS_MAX));
        scene.trap(&ACTORS_MAX.to_string());
        assert!(is_known(1), "a call of a known actor removes no other");
    }
}
