//! Limits of the memory used by responses: per response, per actor and in total.
//!
//! A use case reserves memory before it reads the data of its response, or as soon as its size is known. The reservation is released when
//! the connection has accepted the whole response. So a client that requests large responses and reads nothing occupies at most its
//! actor's limit.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{UseCaseError, permission::Actor};

/// The limits of response memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseLimits {
    /// The limit per response.
    pub response_bytes_max: usize,
    /// The limit for all responses in total.
    pub responses_bytes_max: usize,
    /// The limit for all responses of one actor.
    pub responses_bytes_per_actor_max: usize,
}

/// The memory that all responses share.
#[derive(Debug)]
pub struct ResponseMemory {
    limits: ResponseLimits,
    used: Mutex<Used>,
}

/// The memory of one response. Dropping it releases the memory.
#[derive(Debug)]
pub struct ResponseReservation {
    memory: Arc<ResponseMemory>,
    actor: Actor,
    reserved: Mutex<Reserved>,
}

/// The bytes in use. `by_actor` has at most as many entries as there are large responses.
#[derive(Debug, Default)]
struct Used {
    total: usize,
    by_actor: HashMap<Actor, usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reserved {
    /// The known bytes of the response itself.
    response: usize,
    /// Whether the response is complete and its source data was dropped.
    is_complete: bool,
}

impl ResponseMemory {
    /// Creates the memory without reservations.
    pub fn new(limits: ResponseLimits) -> Self {
        Self {
            limits,
            used: Mutex::default(),
        }
    }

    /// Starts an empty reservation for a response to this actor.
    pub fn begin(self: &Arc<Self>, actor: &Actor) -> ResponseReservation {
        ResponseReservation {
            memory: Arc::clone(self),
            actor: actor.clone(),
            reserved: Mutex::default(),
        }
    }

    /// Returns the bytes reserved for all responses.
    pub fn used_bytes(&self) -> usize {
        self.used.lock().total
    }

    /// Changes the reservation of a response if it fits or is forced.
    fn change(
        &self,
        actor: &Actor,
        from: Reserved,
        to: Reserved,
        is_forced: bool,
    ) -> Result<(), UseCaseError> {
        let limits = &self.limits;
        if !is_forced && to.response > limits.response_bytes_max {
            let bytes_max = limits.response_bytes_max;
            return Err(UseCaseError::ResponseTooLarge { bytes_max });
        }
        if from.in_total() == to.in_total() && from.of_actor() == to.of_actor() {
            return Ok(());
        }
        let mut used = self.used.lock();
        let of_actor = used.by_actor.get(actor).copied().unwrap_or_default();
        let of_actor = of_actor
            .saturating_sub(from.of_actor())
            .saturating_add(to.of_actor());
        let total = used
            .total
            .saturating_sub(from.in_total())
            .saturating_add(to.in_total());
        if !is_forced && of_actor > limits.responses_bytes_per_actor_max {
            return Err(UseCaseError::NoResponseMemoryOfActor);
        }
        if !is_forced && total > limits.responses_bytes_max {
            return Err(UseCaseError::NoResponseMemory);
        }
        used.total = total;
        match used.by_actor.entry(actor.clone()) {
            Entry::Occupied(entry) if of_actor == 0 => drop(entry.remove()),
            entry => drop(entry.insert_entry(of_actor)),
        }
        Ok(())
    }
}

impl ResponseReservation {
    /// Reserves more bytes, before the data is read.
    ///
    /// # Errors
    /// If a limit would be exceeded. The reservation is unchanged then.
    pub fn reserve(&self, bytes: usize) -> Result<(), UseCaseError> {
        let mut reserved = self.reserved.lock();
        let more = Reserved {
            response: reserved.response.saturating_add(bytes),
            is_complete: false,
        };
        self.memory.change(&self.actor, *reserved, more, false)?;
        *reserved = more;
        Ok(())
    }

    /// Sets the reservation to the size of the complete response and releases the memory of its source data.
    ///
    /// # Errors
    /// If it is larger than the reservation and a limit would be exceeded. It is counted nevertheless.
    pub fn complete(&self, bytes: usize) -> Result<(), UseCaseError> {
        let mut reserved = self.reserved.lock();
        let complete = Reserved {
            response: bytes,
            is_complete: true,
        };
        let is_more = bytes > reserved.response;
        let outcome = self
            .memory
            .change(&self.actor, *reserved, complete, !is_more);
        if outcome.is_err() {
            let _ = self.memory.change(&self.actor, *reserved, complete, true);
        }
        *reserved = complete;
        outcome
    }
}

impl Drop for ResponseReservation {
    fn drop(&mut self) {
        let reserved = *self.reserved.lock();
        let nothing = Reserved::default();
        let _ = self.memory.change(&self.actor, reserved, nothing, true);
    }
}

impl Reserved {
    /// Returns the bytes that count for the actor.
    fn of_actor(self) -> usize {
        if self.response > UNCOUNTED_RESPONSE_BYTES_MAX {
            self.response
        } else {
            0
        }
    }

    /// Returns the bytes that count in total. While a response is built, its source data is in memory, too.
    fn in_total(self) -> usize {
        if self.is_complete {
            self.of_actor()
        } else {
            self.of_actor().saturating_mul(COPIES_WHILE_BUILT)
        }
    }
}

/// The maximum size of an uncounted response, in bytes. The limit of concurrent requests bounds the memory of such
/// responses. So large responses can't block a response with one value.
pub const UNCOUNTED_RESPONSE_BYTES_MAX: usize = 128 * 1024;

/// The copies of a response's content in memory while the response is built: encrypted or decrypted, and rendered.
const COPIES_WHILE_BUILT: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn memory() -> Arc<ResponseMemory> {
        Arc::new(ResponseMemory::new(ResponseLimits {
            response_bytes_max: 4 * MIB,
            responses_bytes_max: 16 * MIB,
            responses_bytes_per_actor_max: 6 * MIB,
        }))
    }

    /// Returns the limit that refuses a reservation: of one response, of the actor, or of all responses.
    fn refused_by(reserved: Result<(), UseCaseError>) -> Option<&'static str> {
        match reserved {
            Ok(()) => None,
            Err(UseCaseError::ResponseTooLarge { bytes_max }) if bytes_max == 4 * MIB => {
                Some("one")
            }
            Err(UseCaseError::NoResponseMemoryOfActor) => Some("actor"),
            Err(UseCaseError::NoResponseMemory) => Some("all"),
            Err(other) => panic!("{other}"),
        }
    }

    fn begin(memory: &Arc<ResponseMemory>, actor: &str) -> ResponseReservation {
        memory.begin(&Actor::of_lookup(actor))
    }

    #[test]
    fn one_byte_past_each_limit_is_refused() {
        let memory = memory();
        let first = begin(&memory, "one");
        assert_eq!(refused_by(first.reserve(4 * MIB + 1)), Some("one"));
        assert_eq!(refused_by(first.reserve(4 * MIB)), None);
        assert_eq!(refused_by(first.reserve(1)), Some("one"));
        assert_eq!(memory.used_bytes(), 8 * MIB);
        let second = begin(&memory, "one");
        assert_eq!(refused_by(second.reserve(2 * MIB + 1)), Some("actor"));
        assert_eq!(refused_by(second.reserve(2 * MIB)), None);
        let other = begin(&memory, "other");
        assert_eq!(refused_by(other.reserve(2 * MIB + 1)), Some("all"));
        assert_eq!(refused_by(other.reserve(2 * MIB)), None);
        assert_eq!(memory.used_bytes(), 16 * MIB);
        drop((first, second, other));
        assert_eq!(memory.used_bytes(), 0);
        assert!(memory.used.lock().by_actor.is_empty());
    }

    #[test]
    fn a_complete_response_counts_once() {
        let memory = memory();
        let reservation = begin(&memory, "one");
        reservation.reserve(3 * MIB).unwrap();
        reservation.complete(2 * MIB).unwrap();
        assert_eq!(memory.used_bytes(), 2 * MIB);
    }

    #[test]
    fn the_memory_of_a_refused_response_counts_until_it_is_dropped() {
        let memory = memory();
        let reservation = begin(&memory, "one");
        assert_eq!(refused_by(reservation.complete(5 * MIB)), Some("one"));
        assert_eq!(memory.used_bytes(), 5 * MIB);
        drop(reservation);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn small_responses_fit_when_large_ones_use_all_memory() {
        let memory = memory();
        let large: Vec<_> = ["one", "two"]
            .into_iter()
            .map(|actor| {
                let reservation = begin(&memory, actor);
                reservation.reserve(4 * MIB).unwrap();
                reservation
            })
            .collect();
        let small = begin(&memory, "one");
        small.reserve(UNCOUNTED_RESPONSE_BYTES_MAX).unwrap();
        assert_eq!(refused_by(small.reserve(1)), Some("all"));
        drop(large);
    }
}
