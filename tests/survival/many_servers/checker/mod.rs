//! Looks for rules that a recorded history of several servers breaks. It knows nothing of servers: it is given calls, each with
//! its beginning and its end, and what was answered.
//!
//! For each name there must be an order of all its calls in which each has its effect at one moment between its beginning and
//! its end, and in which a single server with the rules of `model.rs` would have answered the same. So what is read is never
//! older than what was acknowledged before, whichever server is asked. A call without a clear answer may have had its effect at
//! any moment after its beginning, or none at all.

mod model;
mod search;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use search::{Unexplained, explain};

/// An id of a version or of a credential.
pub(super) type Id = u128;

/// One request and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The credential that it is about.
    pub(super) name: String,
    /// Which client sent it, to which server, for people.
    pub(super) by: String,
    pub(super) begun: Duration,
    pub(super) ended: Duration,
    pub(super) action: Action,
    pub(super) outcome: Outcome,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Adds a version whose value is brought along.
    Set,
    Generate {
        mode: Mode,
        parameters: u32,
    },
    /// Adds a version with the parameters of the one in use.
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
    /// Something else, which signs it, had it regenerated.
    RegenerateInBulk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Converge,
    NoOverwrite,
    Overwrite,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A version: one that was added, or one that was kept.
    Version(Seen),
    /// All versions, newest first.
    Versions(Vec<Seen>),
    /// All versions, newest first, of the credential with this id.
    Certificate(Id, Vec<Seen>),
    /// It was done, and nothing is told of it.
    Done,
    /// It is not there.
    Absent,
    /// It can't be done as things are; nothing was.
    Refused,
    /// It may have been done, or may still be.
    Unknown,
}

/// A version as it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: Id,
    /// From which parameters its value was made, as the value itself says.
    pub(super) parameters: u32,
    pub(super) is_transitional: bool,
    /// What tells its value from others; none where it was not shown.
    pub(super) value: Option<u64>,
}

/// A rule that was broken, in words.
pub(super) type Violation = String;

/// What was found in a history.
pub(super) struct Findings {
    /// All rules that it breaks.
    pub(super) violations: Vec<Violation>,
    /// The names of whose calls it is not known whether they break one: so many orders of them are possible.
    pub(super) undecided: Vec<String>,
}

/// Looks for rules that a history breaks.
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

/// An id has one value and one name, whoever asks and however often.
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
