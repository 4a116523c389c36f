//! The circuit breaker: disables a plugin that keeps failing, for one actor or, if it fails for several, for all.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::{Duration, Instant},
};

use keywright_core::{
    permission::Actor,
    ports::{OpenCircuit, PluginCallError, PluginFaultError, PluginState},
};
use parking_lot::Mutex;

use crate::call::{CIRCUIT_OPEN, Plugin, not_called};

/// The minimum number of actors with faults before the circuit opens for all. A single actor can therefore disable a plugin
/// only for itself.
const FAULTING_ACTORS_MIN: u32 = 3;
/// The maximum number of actors tracked per component. Beyond it, the least recent caller is dropped.
const ACTORS_MAX: usize = 1_024;

/// Counts consecutive faults of one component, separately for each function: `normalize` may work while `generate` fails.
/// A fault is a call that the host ended.
///
/// The input may cause a fault, so it counts against its actor: after `faults_max` consecutive faults, the circuit opens for that
/// actor.
///
/// The circuit opens for all actors when at least [`FAULTING_ACTORS_MIN`] actors had `faults_max` faults in total, without any
/// returning call of the function in between. Repeating the same input counts once per actor. Even then, actors whose own latest
/// calls returned are served, so that colluding actors can't disable a working plugin. One returning call of the function closes
/// the circuit for all.
///
/// After `open_time`, calls are permitted again. The next fault reopens the circuit; a returning call resets it.
pub(crate) struct Breaker {
    /// The number of consecutive faults that opens the circuit.
    faults_max: u32,
    open_time: Duration,
    inputs: RandomState,
    state: Mutex<State>,
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
pub(crate) struct Call {
    /// The calling actor; `None` for the server itself.
    pub(crate) actor: Option<Actor>,
    pub(crate) function: &'static str,
    /// A hash of its input.
    pub(crate) input: u64,
}

/// The scope of an opened circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    ForActor,
    ForAll,
}

#[derive(Default)]
struct State {
    actors: HashMap<Option<Actor>, ActorRecord>,
    /// Consecutive faults of all actors, by function.
    streaks: BTreeMap<&'static str, FaultStreak>,
    /// The end of the period for which the circuit is open for all, and the function whose faults opened it.
    open: Option<(Instant, &'static str)>,
    /// A counter that orders calls and numbers streaks.
    clock: u64,
}

/// The record of one actor's calls.
#[derive(Default)]
struct ActorRecord {
    called_at: u64,
    open_until: Option<Instant>,
    functions: BTreeMap<&'static str, FunctionRecord>,
}

/// The record of one actor's calls of a function.
#[derive(Default)]
struct FunctionRecord {
    consecutive_faults: u32,
    has_returned: bool,
    /// The number of the [`FaultStreak`] that this actor's faults were counted in.
    streak: u64,
    last_faulting_input: u64,
}

/// Consecutive faults of all actors.
struct FaultStreak {
    number: u64,
    faults: u32,
    actors: u32,
}

impl Breaker {
    fn new(faults_max: u32, open_time: Duration) -> Self {
        Self {
            faults_max,
            open_time,
            inputs: RandomState::new(),
            state: Mutex::default(),
        }
    }

    /// Describes a call with these inputs.
    pub(crate) fn call(
        &self,
        actor: Option<&Actor>,
        function: &'static str,
        inputs: &[&str],
    ) -> Call {
        Call {
            actor: actor.cloned(),
            function,
            input: self.inputs.hash_one(inputs),
        }
    }

    /// Returns the time until the circuit closes for a call; `None` if it is closed.
    pub(crate) fn open_for(&self, call: &Call, now: Instant) -> Option<Duration> {
        let state = self.state.lock();
        let open = state.open_circuit(state.actors.get(&call.actor), now)?;
        Some(open.closes_after)
    }

    /// Returns the circuit that is open for calls on behalf of an actor, if there is one.
    pub(crate) fn open_circuit(&self, actor: &Actor, now: Instant) -> Option<OpenCircuit> {
        let state = self.state.lock();
        state.open_circuit(state.actors.get(&Some(actor.clone())), now)
    }

    /// Returns the state of one of the component's plugins, without what only a generator has.
    pub(crate) fn state(&self, plugin: &Plugin, actor: &Actor) -> PluginState {
        let (calls, faults) = plugin.measurements.counts();
        PluginState {
            identity: plugin.identity.clone(),
            credential_type: None,
            entropy_bits_min: None,
            calls,
            faults,
            open_circuit: self.open_circuit(actor, Instant::now()),
        }
    }

    /// Records that a call returned, whatever its result.
    pub(crate) fn returned(&self, call: &Call) {
        let mut state = self.state.lock();
        state.streaks.remove(call.function);
        state.open = state.open.filter(|(_, of)| *of != call.function);
        let function_record = state.function_record(call);
        function_record.consecutive_faults = 0;
        function_record.has_returned = true;
    }

    /// Records a failed call. Returns the scope of the circuit if this fault opens it.
    pub(crate) fn faulted(
        &self,
        call: &Call,
        fault: PluginFaultError,
        now: Instant,
    ) -> Option<Opened> {
        if !is_ended_by_host(fault) {
            return None;
        }
        let mut state = self.state.lock();
        let number = state.tick();
        let streak = state.streaks.entry(call.function).or_insert(FaultStreak {
            number,
            faults: 0,
            actors: 0,
        });
        let number = streak.number;
        let function_record = state.function_record(call);
        let is_new_actor = function_record.streak != number;
        let is_new_input = is_new_actor || function_record.last_faulting_input != call.input;
        function_record.streak = number;
        function_record.last_faulting_input = call.input;
        function_record.consecutive_faults = function_record.consecutive_faults.saturating_add(1);
        let are_too_many_of_actor = function_record.consecutive_faults >= self.faults_max;
        let are_too_many = state.streaks.get_mut(call.function).is_some_and(|streak| {
            streak.faults = streak.faults.saturating_add(u32::from(is_new_input));
            streak.actors = streak.actors.saturating_add(u32::from(is_new_actor));
            streak.faults >= self.faults_max && streak.actors >= FAULTING_ACTORS_MIN
        });
        let until = now + self.open_time;
        if are_too_many && state.open.is_none_or(|(open_until, _)| open_until <= now) {
            state.open = Some((until, call.function));
            return Some(Opened::ForAll);
        }
        let actor_record = state.actor_record(call);
        if are_too_many_of_actor && actor_record.open_until.is_none_or(|until| until <= now) {
            actor_record.open_until = Some(until);
            return Some(Opened::ForActor);
        }
        None
    }
}

impl State {
    fn open_circuit(
        &self,
        actor_record: Option<&ActorRecord>,
        now: Instant,
    ) -> Option<OpenCircuit> {
        let actor_open_until = actor_record.and_then(|actor_record| actor_record.open_until);
        let is_proven = actor_record.is_some_and(ActorRecord::is_proven);
        let all_open_until = self
            .open
            .filter(|_| !is_proven)
            .map(|(open_until, _)| open_until);
        let open_until = actor_open_until.max(all_open_until)?;
        let closes_after = open_until.checked_duration_since(now)?;
        (!closes_after.is_zero()).then_some(OpenCircuit {
            is_for_all: all_open_until == Some(open_until),
            closes_after,
        })
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn function_record(&mut self, call: &Call) -> &mut FunctionRecord {
        let actor_record = self.actor_record(call);
        actor_record.functions.entry(call.function).or_default()
    }

    fn actor_record(&mut self, call: &Call) -> &mut ActorRecord {
        let called_at = self.tick();
        if self.actors.len() >= ACTORS_MAX && !self.actors.contains_key(&call.actor) {
            let by_time = self.actors.iter();
            let oldest = by_time.min_by_key(|(_, actor_record)| actor_record.called_at);
            if let Some(oldest) = oldest.map(|(actor, _)| actor.clone()) {
                self.actors.remove(&oldest);
            }
        }
        let actor_record = self.actors.entry(call.actor.clone()).or_default();
        actor_record.called_at = called_at;
        actor_record
    }
}

impl ActorRecord {
    /// Returns whether a call of this actor has returned, and its latest call of each function did not fault.
    fn is_proven(&self) -> bool {
        let functions = || self.functions.values();
        functions().any(|function_record| function_record.has_returned)
            && functions().all(|function_record| function_record.consecutive_faults == 0)
    }
}

/// A call of a plugin's guest. Its outcome counts even if the caller disconnects, so that disconnecting does not hide faults.
pub(crate) struct Attempt {
    breaker: Arc<Breaker>,
    call: Call,
}

impl Attempt {
    /// Prepares a call of a function with these inputs.
    ///
    /// # Errors
    /// [`PluginCallError::CircuitOpen`] if the circuit is open. This records the metric.
    pub(crate) fn begin(
        plugin: &Plugin,
        breaker: &Arc<Breaker>,
        actor: Option<&Actor>,
        function: &'static str,
        inputs: &[&str],
    ) -> Result<Self, PluginCallError> {
        let attempt = Self {
            breaker: Arc::clone(breaker),
            call: breaker.call(actor, function, inputs),
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
        match self.breaker.open_for(&self.call, Instant::now()) {
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
        let seconds = self.breaker.open_time.as_secs();
        match self.breaker.faulted(&self.call, fault, Instant::now()) {
            Some(Opened::ForAll) => tracing::error!(
                plugin.name = plugin.identity.name,
                plugin.digest = plugin.identity.digest,
                disabled_seconds = seconds,
                "the plugin's component kept failing for several actors: temporarily disabled it"
            ),
            Some(Opened::ForActor) => tracing::error!(
                plugin.name = plugin.identity.name,
                plugin.digest = plugin.identity.digest,
                actor = self.call.actor.as_ref().map(Actor::as_str),
                disabled_seconds = seconds,
                "the plugin's component kept failing for one actor: temporarily disabled it for this actor"
            ),
            None => {}
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

        fn call(&self, actor: &str, function: &'static str, input: &str) -> Call {
            let actor = Actor::of_lookup(actor);
            self.breaker.call(Some(&actor), function, &[input])
        }

        /// Records a call of `generate` that traps.
        fn trap(&self, actor: &str, input: &str) -> Option<Opened> {
            let call = self.call(actor, "generate", input);
            self.breaker
                .faulted(&call, PluginFaultError::Trapped, self.now)
        }

        /// Records a call of `generate` that returns.
        fn response(&self, actor: &str) {
            self.breaker.returned(&self.call(actor, "generate", "good"));
        }

        fn open_for(&self, actor: &str) -> Option<Duration> {
            self.breaker
                .open_for(&self.call(actor, "normalize", ""), self.now)
        }
    }

    #[test]
    fn faults_of_one_actor_open_the_circuit_only_for_that_actor() {
        let mut scene = Scene::new();
        for input in ["1", "2"] {
            assert_eq!(scene.trap("a", input), None);
            assert_eq!(scene.open_for("a"), None);
        }
        assert_eq!(scene.trap("a", "3"), Some(Opened::ForActor));
        assert_eq!(scene.open_for("a"), Some(OPEN_TIME));
        for number in 0..100 {
            assert_eq!(scene.trap("a", &format!("more {number}")), None);
        }
        assert_eq!(scene.open_for("b"), None);
        scene.now += OPEN_TIME / 2;
        assert_eq!(scene.open_for("a"), Some(OPEN_TIME / 2));
        scene.now += OPEN_TIME / 2;
        assert_eq!(scene.open_for("a"), None);
        assert_eq!(scene.trap("a", "3"), Some(Opened::ForActor), "once more");
    }

    #[test]
    fn only_consecutive_faults_of_one_function_count() {
        let scene = Scene::new();
        for _ in 0..5 {
            assert_eq!(scene.trap("a", "1"), None);
            assert_eq!(scene.trap("a", "2"), None);
            scene.response("a");
        }
        let accept = scene.call("a", "accept", "");
        for _ in 0..2 {
            assert_eq!(scene.trap("a", ""), None);
            let opened = scene
                .breaker
                .faulted(&accept, PluginFaultError::Trapped, scene.now);
            assert_eq!(opened, None);
        }
        assert_eq!(scene.trap("a", ""), Some(Opened::ForActor));
    }

    #[test]
    fn faults_of_three_actors_open_the_circuit_for_all_actors() {
        let scene = Scene::new();
        assert_eq!(scene.trap("a", ""), None);
        assert_eq!(scene.trap("b", ""), None);
        assert_eq!(scene.trap("c", ""), Some(Opened::ForAll));
        for actor in ["a", "b", "c", "d"] {
            assert_eq!(scene.open_for(actor), Some(OPEN_TIME), "{actor}");
        }
        scene.response("d");
        for actor in ["a", "b", "c", "d", "e"] {
            assert_eq!(scene.open_for(actor), None, "{actor}");
        }
    }

    #[test]
    fn repeated_input_of_an_actor_counts_once_for_other_actors() {
        let scene = Scene {
            breaker: Breaker::new(5, OPEN_TIME),
            now: Instant::now(),
        };
        for actor in ["a", "b", "c"] {
            for _ in 0..4 {
                assert_eq!(scene.trap(actor, "same"), None);
            }
        }
        assert_eq!(scene.open_for("d"), None);
        assert_eq!(scene.trap("a", "another"), Some(Opened::ForActor));
        assert_eq!(scene.trap("b", "another"), Some(Opened::ForAll));
    }

    #[test]
    fn colluding_actors_cannot_disable_a_plugin_for_others() {
        let scene = Scene::new();
        scene.response("honest");
        for actor in ["a", "b", "c", "d"] {
            scene.trap(actor, "");
        }
        assert!(scene.open_for("stranger").is_some());
        assert_eq!(scene.open_for("honest"), None);
        scene.trap("honest", "");
        assert!(
            scene.open_for("honest").is_some(),
            "until one of its own fails"
        );
    }

    #[test]
    fn faults_that_the_guest_reports_do_not_count() {
        let scene = Scene::new();
        let call = scene.call("a", "generate", "");
        for fault in [
            PluginFaultError::InputTooLarge(1),
            PluginFaultError::Misconfigured,
            PluginFaultError::NotInstantiated,
            PluginFaultError::OutputMalformed,
            PluginFaultError::OutputTooLarge(1),
            PluginFaultError::Reported,
        ] {
            for _ in 0..3 {
                let opened = scene.breaker.faulted(&call, fault, scene.now);
                assert_eq!(opened, None, "{fault}");
            }
        }
    }

    #[test]
    fn at_most_1024_actors_are_tracked() {
        let scene = Scene::new();
        for number in 0..=ACTORS_MAX {
            scene.response(&number.to_string());
        }
        assert_eq!(scene.breaker.state.lock().actors.len(), ACTORS_MAX);
        let is_known = |number: usize| {
            let actor = Actor::of_lookup(&number.to_string());
            scene.breaker.state.lock().actors.contains_key(&Some(actor))
        };
        assert!(!is_known(0) && is_known(1) && is_known(ACTORS_MAX));
        scene.response(&ACTORS_MAX.to_string());
        assert!(is_known(1), "a call of a known actor removes no other");
    }
}
