//! Queued audit events by actor. Actors take turns, so that the events of one actor delay those of others only briefly.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

/// Events were not written, or may not have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail can't be written at present")]
pub(super) struct UnwrittenError;

/// Reports to a request whether its lines were written.
pub(super) type Outcome = oneshot::Sender<Result<(), UnwrittenError>>;

/// The lines of requests with many events, and of actors with many lines for which no request waits.
#[derive(Default)]
pub(super) struct LinesByActor {
    actors: HashMap<String, ActorLines>,
    /// The actors with lines, in the order of their turns.
    turns: VecDeque<String>,
    /// The number of bytes of each actor in the next write for which no request waits, without those in `actors`.
    unawaited: HashMap<String, usize>,
}

#[derive(Default)]
struct ActorLines {
    /// The lines of each request, oldest first, and the sender to the request if it waits.
    requests: VecDeque<(Vec<u8>, Option<Outcome>)>,
    bytes: usize,
}

impl LinesByActor {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Returns the number of bytes of an actor.
    pub(super) fn bytes_of(&self, actor: &str) -> usize {
        self.actors.get(actor).map_or(0, |own| own.bytes)
    }

    /// Returns the number of bytes of all actors, of which each actor's count up to this maximum.
    pub(super) fn bytes_up_to(&self, bytes_per_actor_max: usize) -> usize {
        let counted = self.actors.values();
        counted.map(|own| own.bytes.min(bytes_per_actor_max)).sum()
    }

    /// Returns whether the next write may contain lines of this length for which no request waits. Each write contains at most
    /// [`FEW_EVENTS_BYTES_MAX`] of each actor.
    pub(super) fn count_unawaited(&mut self, actor: &str, bytes: usize) -> bool {
        let counted = self.unawaited.entry(actor.to_owned()).or_default();
        let fits = *counted + bytes <= FEW_EVENTS_BYTES_MAX;
        if fits {
            *counted += bytes;
        }
        fits
    }

    pub(super) fn push(&mut self, actor: &str, lines: &[u8], sender: Option<Outcome>) {
        let own = self.actors.entry(actor.to_owned()).or_default();
        if own.requests.is_empty() {
            self.turns.push_back(actor.to_owned());
        }
        own.bytes += lines.len();
        own.requests.push_back((lines.to_vec(), sender));
    }

    /// Begins the next write. Moves lines of the actor whose turn it is: those of one request, or of several requests with at most
    /// [`FEW_EVENTS_BYTES_MAX`] together.
    pub(super) fn take_turn(&mut self, lines: &mut Vec<u8>, waiting: &mut Vec<Outcome>) {
        self.unawaited.clear();
        let Some(actor) = self.turns.pop_front() else {
            return;
        };
        let Some(own) = self.actors.get_mut(&actor) else {
            return;
        };
        let mut bytes = 0;
        while let Some((next, sender)) = own.requests.pop_front() {
            bytes += next.len();
            lines.extend_from_slice(&next);
            waiting.extend(sender);
            let following = own.requests.front().map_or(0, |(next, _)| next.len());
            if bytes + following > FEW_EVENTS_BYTES_MAX {
                break;
            }
        }
        own.bytes -= bytes;
        if own.requests.is_empty() {
            self.actors.remove(&actor);
        } else {
            self.turns.push_back(actor);
        }
    }
}

/// Maximum size of the lines of a request with few events, in bytes: about 30 events.
pub(super) const FEW_EVENTS_BYTES_MAX: usize = 16 * 1024;
