//! Opening the circuit of a plugin that keeps failing: for the actor whose calls fail, and for all once several actors' do.

mod attempt;

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use keywright_core::{permission::Actor, ports::PluginFault};

pub(crate) use attempt::Attempt;

/// How many actors' calls must fail in a row, at least, before the circuit opens for all. What one actor sends can then
/// disable a plugin for that actor alone.
const FAULTING_ACTORS_MIN: u32 = 3;
/// How many actors are remembered for each component. Beyond it, the one that has called least recently is forgotten.
const ACTORS_MAX: usize = 1_024;

/// Counts how often in a row the calls of one component, known by its digest, were cut short, those of each function by
/// themselves: what checks parameters may well work where what makes a value does not.
///
/// A call that is cut short may be the fault of its input. So it counts against its actor: after `faults_max` in a row,
/// nothing of the component is called for that actor for a while. It opens for all when no call of the function returned
/// while at least [`FAULTING_ACTORS_MIN`] actors had faults, `faults_max` together, in which the same input of the same actor
/// counts once. Even then an actor whose own latest calls returned is served, so that actors in league can't disable a plugin
/// that works; one call of the function that returns closes the circuit for all.
///
/// After its time the component is called again; the next fault opens the circuit again, and a call that returns resets it.
pub(crate) struct Breaker {
    /// How many faults in a row are too many.
    faults_max: u32,
    open_time: Duration,
    inputs: RandomState,
    state: Mutex<State>,
}

/// The breaker of each component, by its digest.
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

    /// The breaker of a component, which all plugins with that component share.
    pub(crate) fn of(&self, digest: &str) -> Arc<Breaker> {
        // An entry is whole or not there.
        let mut by_digest = self
            .by_digest
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(Breaker::new(self.faults_max, self.open_time));
        Arc::clone(by_digest.entry(digest.to_owned()).or_insert_with(fresh))
    }
}

/// One call, as the breaker counts it.
pub(crate) struct Call {
    /// For whom it is made; `None` for the server itself.
    pub(crate) actor: Option<Actor>,
    pub(crate) function: &'static str,
    /// A hash of its input.
    pub(crate) input: u64,
}

/// For whom a circuit has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    ForActor,
    ForAll,
}

#[derive(Default)]
struct State {
    actors: HashMap<Option<Actor>, OfActor>,
    /// The faults of all actors in a row, by function.
    rows: BTreeMap<&'static str, Row>,
    /// Until when the circuit is open for all, and the function whose faults opened it.
    open: Option<(Instant, &'static str)>,
    /// Counts calls and rows.
    clock: u64,
}

/// What is known of one actor's calls.
#[derive(Default)]
struct OfActor {
    called_at: u64,
    open_until: Option<Instant>,
    functions: BTreeMap<&'static str, OfFunction>,
}

/// What is known of one actor's calls of a function.
#[derive(Default)]
struct OfFunction {
    faults_in_a_row: u32,
    has_returned: bool,
    /// The row of all actors' faults in which this actor's count.
    row: u64,
    last_faulting_input: u64,
}

/// Faults in a row, of all actors.
struct Row {
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

    /// A call with these inputs.
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

    /// How long the circuit is still open for a call.
    pub(crate) fn open_for(&self, call: &Call, now: Instant) -> Option<Duration> {
        let state = self.state();
        let of_actor = state.actors.get(&call.actor);
        let own = of_actor.and_then(|of_actor| of_actor.open_until);
        let is_proven = of_actor.is_some_and(OfActor::is_proven);
        let all = state
            .open
            .filter(|_| !is_proven)
            .map(|(open_until, _)| open_until);
        let open_until = own.max(all)?;
        open_until
            .checked_duration_since(now)
            .filter(|left| !left.is_zero())
    }

    /// A call has returned, whatever its result.
    pub(crate) fn returned(&self, call: &Call) {
        let mut state = self.state();
        state.rows.remove(call.function);
        state.open = state.open.filter(|(_, of)| *of != call.function);
        let of_function = state.of_function(call);
        of_function.faults_in_a_row = 0;
        of_function.has_returned = true;
    }

    /// A call came to nothing. Returns for whom the circuit opens with it, if it does.
    pub(crate) fn faulted(&self, call: &Call, fault: PluginFault, now: Instant) -> Option<Opened> {
        if !is_cut_short(fault) {
            return None;
        }
        let mut state = self.state();
        let number = state.tick();
        let row = state.rows.entry(call.function).or_insert(Row {
            number,
            faults: 0,
            actors: 0,
        });
        let number = row.number;
        let of_function = state.of_function(call);
        let is_new_actor = of_function.row != number;
        let is_new_input = is_new_actor || of_function.last_faulting_input != call.input;
        of_function.row = number;
        of_function.last_faulting_input = call.input;
        of_function.faults_in_a_row = of_function.faults_in_a_row.saturating_add(1);
        let are_too_many_of_actor = of_function.faults_in_a_row >= self.faults_max;
        let are_too_many = state.rows.get_mut(call.function).is_some_and(|row| {
            row.faults = row.faults.saturating_add(u32::from(is_new_input));
            row.actors = row.actors.saturating_add(u32::from(is_new_actor));
            row.faults >= self.faults_max && row.actors >= FAULTING_ACTORS_MIN
        });
        let until = now + self.open_time;
        if are_too_many && state.open.is_none_or(|(open_until, _)| open_until <= now) {
            state.open = Some((until, call.function));
            return Some(Opened::ForAll);
        }
        let of_actor = state.of_actor(call);
        if are_too_many_of_actor && of_actor.open_until.is_none_or(|until| until <= now) {
            of_actor.open_until = Some(until);
            return Some(Opened::ForActor);
        }
        None
    }

    /// For how long a circuit is open.
    pub(crate) fn open_time(&self) -> Duration {
        self.open_time
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A count may be one short after a panic, which does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn of_function(&mut self, call: &Call) -> &mut OfFunction {
        let of_actor = self.of_actor(call);
        of_actor.functions.entry(call.function).or_default()
    }

    fn of_actor(&mut self, call: &Call) -> &mut OfActor {
        let called_at = self.tick();
        if self.actors.len() >= ACTORS_MAX && !self.actors.contains_key(&call.actor) {
            let by_time = self.actors.iter();
            let oldest = by_time.min_by_key(|(_, of_actor)| of_actor.called_at);
            if let Some(oldest) = oldest.map(|(actor, _)| actor.clone()) {
                self.actors.remove(&oldest);
            }
        }
        let of_actor = self.actors.entry(call.actor.clone()).or_default();
        of_actor.called_at = called_at;
        of_actor
    }
}

impl OfActor {
    /// Whether calls of this actor have returned, and none has failed since.
    fn is_proven(&self) -> bool {
        let functions = || self.functions.values();
        functions().any(|of_function| of_function.has_returned)
            && functions().all(|of_function| of_function.faults_in_a_row == 0)
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
mod tests;
