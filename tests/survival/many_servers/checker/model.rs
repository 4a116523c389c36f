//! The calls of a history, and the behaviour of a single server that processes one request after the other.

use std::{collections::HashSet, time::Duration};

/// The id of a version or of a credential.
pub(crate) type Id = u128;

/// A request and its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The credential of the request.
    pub(crate) name: String,
    /// The client and the server, for messages.
    pub(crate) by: String,
    pub(crate) begun: Duration,
    pub(crate) ended: Duration,
    pub(crate) action: Action,
    pub(crate) outcome: Outcome,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
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
pub(crate) enum Mode {
    Converge,
    NoOverwrite,
    Overwrite,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
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
pub(crate) struct Seen {
    pub(crate) id: Id,
    /// The parameters of its value, as the value itself shows.
    pub(crate) parameters: u32,
    pub(crate) is_transitional: bool,
    /// Distinguishes its value from others; `None` if it was not returned.
    pub(crate) value: Option<u64>,
}

impl Outcome {
    /// Returns the versions in the outcome.
    pub(super) fn seen(&self) -> &[Seen] {
        match self {
            Self::Version(seen) => std::slice::from_ref(seen),
            Self::Versions(seen) | Self::Certificate(_, seen) => seen,
            Self::Done | Self::Absent | Self::Refused | Self::Unknown => &[],
        }
    }
}

/// The state of a name.
pub(super) type State = Option<Credential>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Credential {
    /// `None` if no response contained it.
    id: Option<Id>,
    /// Newest first.
    versions: Vec<Version>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Version {
    /// `None` if no response contained it.
    id: Option<Id>,
    /// `None` if it was set.
    parameters: Option<u32>,
    is_transitional: bool,
}

/// Returns the state after a call, if its outcome is possible in this state. `added` are the versions that are known to
/// be added by a specific call.
pub(super) fn after(state: &State, call: &Call, added: &HashSet<Id>) -> Option<State> {
    let credential = state.as_ref();
    match (&call.action, &call.outcome) {
        (
            Action::Read | Action::ReadCertificate | Action::Delete | Action::Regenerate,
            Outcome::Absent,
        ) => credential.is_none().then_some(None),
        (Action::Read, Outcome::Versions(seen)) => matches_list(credential?, None, seen, added),
        (Action::ReadCertificate, Outcome::Certificate(id, seen)) => {
            matches_list(credential?, Some(*id), seen, added)
        }
        (Action::ReadVersion(id), Outcome::Version(_)) => {
            let has_it = credential?.has(*id);
            (has_it || credential?.may_have(*id, added)).then(|| state.clone())
        }
        (Action::ReadVersion(id), Outcome::Absent) => {
            let has_it = credential.is_some_and(|credential| credential.has(*id));
            (!has_it).then(|| state.clone())
        }
        (Action::Delete, Outcome::Done | Outcome::Unknown) => credential.map(|_| None),
        (Action::Set, outcome) => with_added(credential, outcome, None, false),
        (Action::Generate { mode, parameters }, outcome) => {
            generated(credential, *mode, *parameters, outcome, added)
        }
        (Action::Regenerate, outcome) => regenerated(credential?, outcome, false),
        (Action::RegenerateInBulk, outcome) => {
            let parameters = credential?.in_use()?.parameters;
            with_added(credential, outcome, parameters, false)
        }
        (
            Action::RegenerateAsTransitional { credential: id }
            | Action::MoveTransitional { credential: id, .. }
            | Action::DeleteVersion { credential: id, .. },
            outcome,
        ) => by_id(credential, *id, &call.action, outcome),
        _ => None,
    }
}

/// Generates in a mode: a version is added, or the active one is kept.
fn generated(
    credential: Option<&Credential>,
    mode: Mode,
    parameters: u32,
    outcome: &Outcome,
    added: &HashSet<Id>,
) -> Option<State> {
    if let (Some(credential), Outcome::Version(seen)) = (credential, outcome)
        && let Some(kept) = credential.with_in_use(seen, added)
    {
        let same = kept
            .in_use()?
            .parameters
            .is_none_or(|its| its == parameters);
        let may_keep = match mode {
            Mode::Overwrite => false,
            Mode::NoOverwrite => true,
            Mode::Converge => same,
        };
        return may_keep.then_some(Some(kept));
    }
    let in_use = credential.and_then(Credential::in_use);
    let must_keep = match mode {
        Mode::Overwrite => false,
        Mode::NoOverwrite => in_use.is_some(),
        Mode::Converge => in_use.is_some_and(|version| version.parameters == Some(parameters)),
    };
    if must_keep {
        return None;
    }
    with_added(credential, outcome, Some(parameters), false)
}

/// Adds a version like the active one, or like an earlier one if another was added meanwhile: a value is generated
/// outside of the transaction that adds it.
fn regenerated(credential: &Credential, outcome: &Outcome, is_transitional: bool) -> Option<State> {
    let is_set = credential.in_use()?.parameters.is_none();
    let is_blocked = is_transitional && credential.has_transitional();
    match outcome {
        Outcome::Refused => (is_set || is_blocked).then(|| Some(credential.clone())),
        Outcome::Version(seen) if !is_blocked => with_added(
            Some(credential),
            outcome,
            Some(seen.parameters),
            is_transitional,
        ),
        Outcome::Unknown if !is_blocked => {
            let parameters = credential.in_use()?.parameters;
            with_added(Some(credential), outcome, parameters, is_transitional)
        }
        _ => None,
    }
}

/// Requests about a certificate by the id of its credential.
fn by_id(
    credential: Option<&Credential>,
    id: Id,
    action: &Action,
    outcome: &Outcome,
) -> Option<State> {
    let is_there = credential.filter(|credential| credential.id.is_none_or(|its| its == id));
    let (Some(credential), false) = (is_there, *outcome == Outcome::Absent) else {
        return absent(credential, id, action, outcome);
    };
    let mut credential = credential.clone();
    credential.id = Some(id);
    match action {
        Action::RegenerateAsTransitional { .. } => regenerated(&credential, outcome, true),
        Action::MoveTransitional { to, .. } => {
            let has_it = to.is_none_or(|to| credential.has(to));
            match outcome {
                Outcome::Refused => (!has_it).then_some(Some(credential)),
                _ if has_it => {
                    for version in &mut credential.versions {
                        version.is_transitional = to.is_some() && version.id == *to;
                    }
                    Some(Some(credential))
                }
                _ => None,
            }
        }
        Action::DeleteVersion { version, .. } => match outcome {
            Outcome::Refused => (credential.versions.len() == 1 && credential.has(*version))
                .then_some(Some(credential)),
            _ if credential.versions.len() > 1 && credential.has(*version) => {
                credential
                    .versions
                    .retain(|other| other.id != Some(*version));
                Some(Some(credential))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The credential or version with this id does not exist.
fn absent(
    credential: Option<&Credential>,
    id: Id,
    action: &Action,
    outcome: &Outcome,
) -> Option<State> {
    let has_it = match action {
        Action::DeleteVersion { version, .. } => {
            credential.is_some_and(|credential| credential.has(*version))
        }
        _ => credential.is_some_and(|credential| credential.id == Some(id)),
    };
    (*outcome == Outcome::Absent && !has_it).then(|| credential.cloned())
}

/// A version is added, with or without details in the outcome.
fn with_added(
    credential: Option<&Credential>,
    outcome: &Outcome,
    parameters: Option<u32>,
    is_transitional: bool,
) -> Option<State> {
    let id = match outcome {
        Outcome::Version(seen) => {
            let is_as_requested = parameters.is_none_or(|requested| requested == seen.parameters)
                && seen.is_transitional == is_transitional
                && !credential.is_some_and(|credential| credential.has(seen.id));
            is_as_requested.then_some(Some(seen.id))?
        }
        Outcome::Done | Outcome::Unknown => None,
        _ => return None,
    };
    let mut credential = credential.cloned().unwrap_or(Credential {
        id: None,
        versions: Vec::new(),
    });
    let version = Version {
        id,
        parameters,
        is_transitional,
    };
    credential.versions.insert(0, version);
    Some(Some(credential))
}

/// Checks that a list matches the state, in order.
fn matches_list(
    credential: &Credential,
    id: Option<Id>,
    seen: &[Seen],
    added: &HashSet<Id>,
) -> Option<State> {
    let is_same = id.is_none() || credential.id.is_none() || credential.id == id;
    if !is_same || seen.len() != credential.versions.len() {
        return None;
    }
    let mut credential = credential.clone();
    credential.id = credential.id.or(id);
    for (version, seen) in credential.versions.iter_mut().zip(seen) {
        if !version.is_listed_as(seen, added) {
            return None;
        }
        version.id = Some(seen.id);
    }
    Some(Some(credential))
}

impl Credential {
    fn has(&self, id: Id) -> bool {
        self.versions.iter().any(|version| version.id == Some(id))
    }

    fn may_have(&self, id: Id, added: &HashSet<Id>) -> bool {
        !added.contains(&id) && self.versions.iter().any(|version| version.id.is_none())
    }

    fn has_transitional(&self) -> bool {
        self.versions.iter().any(|version| version.is_transitional)
    }

    /// Returns the newest version that is not transitional, or the transitional one if there is no other.
    fn in_use(&self) -> Option<&Version> {
        let mut in_use = self
            .versions
            .iter()
            .filter(|version| !version.is_transitional);
        in_use.next().or_else(|| self.versions.first())
    }

    /// Returns the state with the active version from the response, or `None` if it differs.
    fn with_in_use(&self, seen: &Seen, added: &HashSet<Id>) -> Option<Self> {
        let position = self
            .versions
            .iter()
            .position(|version| !version.is_transitional);
        let mut returned = self.clone();
        let version = returned.versions.get_mut(position.unwrap_or_default())?;
        if !version.is_listed_as(seen, added) {
            return None;
        }
        version.id = Some(seen.id);
        Some(returned)
    }
}

impl Version {
    /// Returns whether this version can be the returned one: `added` must not assign it to another call.
    fn is_listed_as(&self, seen: &Seen, added: &HashSet<Id>) -> bool {
        let is_it = match self.id {
            Some(id) => id == seen.id,
            None => !added.contains(&seen.id),
        };
        is_it
            && self.is_transitional == seen.is_transitional
            && self.parameters.is_none_or(|its| its == seen.parameters)
    }
}
