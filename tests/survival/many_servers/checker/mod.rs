//! Checks a recorded history of several servers for violations of rules. It only sees calls, each with its start, end
//! and response.
//!
//! For each name, there must be an order of all its calls in which each takes effect at one time between its start and
//! end, and in which a single server with the rules of `model.rs` would have given the same responses. So a read never
//! returns older data than an acknowledged write, at any server. A call without a clear response may have taken effect
//! at any time after its start, or never.

mod model;
mod search;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use search::{Unexplained, explain};

/// The id of a version or of a credential.
pub(super) type Id = u128;

/// A request and its outcome.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The credential of the request.
    pub(super) name: String,
    /// The client and the server, for messages.
    pub(super) by: String,
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    pub(super) action: Action,
    pub(super) outcome: Outcome,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Adds a version with a given value.
    Set,
    Generate {
        mode: Mode,
        parameters: u32,
    },
    /// Adds a version with the parameters of the active one.
    Regenerate,
    Delete,
    /// Lists all versions.
    Read,
    ReadVersion(Id),
    /// Lists all versions, with the id of the credential.
    ReadCertificate,
    RegenerateAsTransitional {
        credential: Id,
    },
    MoveTransitional {
        credential: Id,
        to: Option<Id>,
    },
    DeleteVersion {
        credential: Id,
        version: Id,
    },
    /// Regenerated because another credential, its CA, was bulk-regenerated.
    RegenerateInBulk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Converge,
    NoOverwrite,
    Overwrite,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A version that was added or kept.
    Version(Seen),
    /// All versions, newest first.
    Versions(Vec<Seen>),
    /// All versions, newest first, of the credential with this id.
    Certificate(Id, Vec<Seen>),
    /// Success, without details.
    Done,
    /// Not found.
    Absent,
    /// Rejected in the current state, without effect.
    Refused,
    /// Unknown: it may have taken effect, or may still do so.
    Unknown,
}

/// A version in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: Id,
    /// The parameters of its value, as the value itself shows.
    pub(super) parameters: u32,
    pub(super) is_transitional: bool,
    /// Distinguishes its value from others; `None` if it was not returned.
    pub(super) value: Option<u64>,
}

/// A description of a violated rule.
pub(super) type Violation = String;

/// The result of checking a history.
pub(super) struct Findings {
    /// All violated rules.
    pub(super) violations: Vec<Violation>,
    /// The names whose calls could not be decided, because too many orders are possible.
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
        .map(|id| format!("the version {id:x} has had two values or two names"))
        .collect()
}

impl Outcome {
    fn seen(&self) -> &[Seen] {
        match self {
            Self::Version(seen) => std::slice::from_ref(seen),
            Self::Versions(seen) | Self::Certificate(_, seen) => seen,
            Self::Done | Self::Absent | Self::Refused | Self::Unknown => &[],
        }
    }
}
