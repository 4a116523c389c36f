//! Checks a recorded history of several servers for violations of rules. It only sees calls, each with its start, end
//! and response.
//!
//! For each name, there must be an order of all its calls in which each takes effect at one time between its start and
//! end. In this order, a single server with the rules of `model.rs` would return the same responses. So a read never
//! returns older data than an acknowledged write, at any server. A call without a clear response may have taken effect
//! at any time after its start, or never.
//!
//! The search uses the algorithm of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993) and the cache of
//! Lowe ("Testing for Linearizability", 2017).

mod model;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

pub(super) use model::{Action, Call, Id, Mode, Outcome, Seen};
use model::{State, after};

/// A description of a violated rule.
type Violation = String;

/// The result of checking a history.
pub(super) struct Findings {
    /// All violated rules.
    pub(super) violations: Vec<Violation>,
    /// The names for which the search stopped without a result, because too many orders are possible.
    pub(super) undecided: Vec<String>,
}

/// Checks a history.
pub(super) fn findings(history: &[Call]) -> Findings {
    let mut violations = ids_that_change(history);
    let mut undecided = Vec::new();
    let mut by_name: HashMap<&str, Vec<&Call>> = HashMap::new();
    for call in history {
        by_name.entry(&call.name).or_default().push(call);
    }
    for (name, calls) in by_name {
        match explain(&calls) {
            Ok(()) => {}
            Err(Unexplained::Impossible(stuck)) => violations.push(format!("{name}: {stuck}")),
            Err(Unexplained::Undecided(stuck)) => undecided.push(format!("{name}: {stuck}")),
        }
    }
    Findings {
        violations,
        undecided,
    }
}

/// Checks that an id has one value and one name in all responses.
fn ids_that_change(history: &[Call]) -> Vec<Violation> {
    let mut known: HashMap<Id, (&str, Option<u64>)> = HashMap::new();
    let mut changed = HashSet::new();
    for call in history {
        for seen in call.outcome.seen() {
            let (name, value) = known.entry(seen.id).or_insert((&call.name, seen.value));
            let is_other_value =
                matches!((*value, seen.value), (Some(one), Some(other)) if one != other);
            if *name != call.name || is_other_value {
                changed.insert(seen.id);
            }
            *value = value.or(seen.value);
        }
    }
    let changed = changed.into_iter();
    changed
        .map(|id| format!("the version {id:x} has two values or two names"))
        .collect()
}

/// A set of calls that have taken effect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Step {
    /// All calls before this one have taken effect, except calls with an unknown outcome.
    reached: usize,
    /// The later calls with a known outcome that have taken effect.
    ahead: Vec<usize>,
    /// The calls with an unknown outcome that have taken effect.
    unknown: Vec<usize>,
    state: State,
}

/// The reason why there is no order.
enum Unexplained {
    /// No order exists: the longest partial order, and the calls that it can't explain.
    Impossible(String),
    /// The search stopped after too many orders.
    Undecided(String),
}

/// Finds an order that explains all outcomes.
fn explain(calls: &[&Call]) -> Result<(), Unexplained> {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.begun);
    let added = added(&calls);
    let mut steps = vec![Step {
        reached: next_known(&calls, 0, &[]),
        ahead: Vec::new(),
        unknown: Vec::new(),
        state: None,
    }];
    let mut seen: HashSet<Step> = HashSet::new();
    let mut farthest = steps[0].clone();
    while let Some(step) = steps.pop() {
        if step.reached == calls.len() {
            return Ok(());
        }
        if progress(&step) > progress(&farthest) {
            farthest = step.clone();
        }
        let mut next: Vec<Step> = candidates(&calls, &step)
            .into_iter()
            .filter_map(|call| next_step(&calls, &step, call, &added))
            .filter(|next| !seen.contains(next))
            .collect();
        // The search tries the last step first.
        next.reverse();
        seen.extend(next.iter().cloned());
        steps.extend(next);
        if seen.len() > STEPS_MAX {
            let described = described(&calls, &farthest);
            return Err(Unexplained::Undecided(described));
        }
    }
    Err(Unexplained::Impossible(described(&calls, &farthest)))
}

/// Returns the versions that are known to be added by a specific call.
fn added(calls: &[&Call]) -> HashSet<Id> {
    let adds = calls.iter().filter(|call| {
        matches!(
            call.action,
            Action::Set
                | Action::Regenerate
                | Action::RegenerateAsTransitional { .. }
                | Action::Generate {
                    mode: Mode::Overwrite,
                    ..
                }
        )
    });
    adds.filter_map(|call| match &call.outcome {
        Outcome::Version(seen) => Some(seen.id),
        _ => None,
    })
    .collect()
}

/// Returns the calls that may take effect next: the calls that started before any other of them ended. Sorts them by their
/// end; calls with an unknown outcome come last.
fn candidates(calls: &[&Call], step: &Step) -> Vec<usize> {
    let mut first_end = Duration::MAX;
    let mut open = Vec::new();
    for (position, call) in calls.iter().enumerate().skip(step.reached) {
        if call.begun > first_end {
            break;
        }
        if !is_unknown(call) && !step.ahead.contains(&position) {
            first_end = first_end.min(call.ended);
            open.push(position);
        }
    }
    open.retain(|&position| calls[position].begun <= first_end);
    open.sort_by_key(|&position| calls[position].ended);
    let begun = calls.iter().enumerate();
    let begun = begun.take_while(|(_, call)| call.begun <= first_end);
    let unknown =
        begun.filter(|(position, call)| is_unknown(call) && !step.unknown.contains(position));
    // The first of several equal requests represents all.
    let mut actions: Vec<&Action> = Vec::new();
    for (position, call) in unknown {
        if !actions.contains(&&call.action) {
            actions.push(&call.action);
            open.push(position);
        }
    }
    open
}

/// Returns the next step after a call, if its outcome is possible here.
fn next_step(calls: &[&Call], step: &Step, position: usize, added: &HashSet<Id>) -> Option<Step> {
    let state = after(&step.state, calls[position], added)?;
    let mut next = Step {
        state,
        ..step.clone()
    };
    if is_unknown(calls[position]) {
        next.unknown.push(position);
        next.unknown.sort_unstable();
        return Some(next);
    }
    next.ahead.push(position);
    next.ahead.sort_unstable();
    next.reached = next_known(calls, next.reached, &next.ahead);
    next.ahead.retain(|&ahead| ahead > next.reached);
    Some(next)
}

/// Returns the next call that has not taken effect and has a known outcome.
fn next_known(calls: &[&Call], from: usize, ahead: &[usize]) -> usize {
    let mut rest = calls.iter().enumerate().skip(from);
    let first = rest.find(|(position, call)| !is_unknown(call) && !ahead.contains(position));
    first.map_or(calls.len(), |(position, _)| position)
}

fn is_unknown(call: &Call) -> bool {
    call.outcome == Outcome::Unknown
}

fn progress(step: &Step) -> usize {
    step.reached + step.ahead.len()
}

/// Describes the calls that can't be explained.
fn described(calls: &[&Call], step: &Step) -> String {
    let open: Vec<String> = candidates(calls, step)
        .into_iter()
        .take(CALLS_SHOWN_MAX)
        .map(|position| describe(calls[position]))
        .collect();
    let before: Vec<String> = calls[..step.reached]
        .iter()
        .rev()
        .take(CALLS_SHOWN_MAX)
        .map(|call| describe(call))
        .collect();
    format!(
        "{} of {} calls are explained, but none of\n{}\nwith {:?}, after (latest first)\n{}",
        progress(step),
        calls.len(),
        open.join("\n"),
        step.state,
        before.join("\n")
    )
}

fn describe(call: &Call) -> String {
    let Call {
        begun,
        ended,
        action,
        outcome,
        by,
        ..
    } = call;
    format!("  {begun:?} to {ended:?}, client {by}: {action:?}, {outcome:?}")
}

/// The maximum number of steps, more than the search needs for any history that can be explained.
const STEPS_MAX: usize = 1_000_000;

const CALLS_SHOWN_MAX: usize = 12;
