//! The memory that responses take: how much one may take, those of one actor together, and all together.
//!
//! A use case reserves memory before it reads what its response is made of. The reservation is released when the connection
//! has taken the whole response. So a client that asks for much and reads nothing holds no more than its actor's share.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How much memory responses may take, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseLimits {
    /// The largest response.
    pub response_bytes_max: usize,
    /// All responses together.
    pub responses_bytes_max: usize,
    /// The responses of one actor together.
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
    actor: String,
    bytes: Mutex<Reserved>,
}

/// Why a response gets no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoResponseMemory {
    /// The response alone exceeds the limit for one response, in bytes.
    TooLarge(usize),
    /// The responses of the actor exceed the limit for one actor.
    ActorsTaken,
    /// All responses together exceed the limit.
    AllTaken,
}

/// The bytes in use. It holds no more actors than there are large responses.
#[derive(Debug, Default)]
struct Used {
    total: usize,
    by_actor: HashMap<String, usize>,
}

/// The bytes of one response.
#[derive(Clone, Copy, Debug, Default)]
struct Reserved {
    /// The bytes of the response itself, as far as they are known.
    response: usize,
    /// Whether the response is complete: what it was made of is gone.
    is_complete: bool,
}

impl ResponseMemory {
    /// Nothing is reserved yet.
    #[must_use]
    pub fn new(limits: ResponseLimits) -> Self {
        Self {
            limits,
            used: Mutex::default(),
        }
    }

    /// A reservation of nothing for a response to this actor.
    #[must_use]
    pub fn begin(self: &Arc<Self>, actor: &str) -> ResponseReservation {
        ResponseReservation {
            memory: Arc::clone(self),
            actor: actor.to_owned(),
            bytes: Mutex::default(),
        }
    }

    /// The bytes that are reserved for all responses.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.used().total
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        // Nothing that is done under this lock can panic halfway.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what is reserved for a response, if that fits or must be.
    fn change(
        &self,
        actor: &str,
        from: Reserved,
        to: Reserved,
        is_forced: bool,
    ) -> Result<(), NoResponseMemory> {
        let limits = &self.limits;
        if !is_forced && to.response > limits.response_bytes_max {
            return Err(NoResponseMemory::TooLarge(limits.response_bytes_max));
        }
        if from.in_total() == to.in_total() && from.of_actor() == to.of_actor() {
            return Ok(());
        }
        let mut used = self.used();
        let of_actor = used.by_actor.get(actor).copied().unwrap_or_default();
        let of_actor = of_actor
            .saturating_sub(from.of_actor())
            .saturating_add(to.of_actor());
        let total = used
            .total
            .saturating_sub(from.in_total())
            .saturating_add(to.in_total());
        if !is_forced && of_actor > limits.responses_bytes_per_actor_max {
            return Err(NoResponseMemory::ActorsTaken);
        }
        if !is_forced && total > limits.responses_bytes_max {
            return Err(NoResponseMemory::AllTaken);
        }
        used.total = total;
        match used.by_actor.entry(actor.to_owned()) {
            Entry::Occupied(entry) if of_actor == 0 => drop(entry.remove()),
            entry => drop(entry.insert_entry(of_actor)),
        }
        Ok(())
    }
}

impl ResponseReservation {
    /// Reserves so many bytes more, before what they hold is read.
    ///
    /// # Errors
    /// When there is no memory for them; then nothing changes.
    pub fn reserve(&self, bytes: usize) -> Result<(), NoResponseMemory> {
        let mut reserved = self.reserved();
        let more = Reserved {
            response: reserved.response.saturating_add(bytes),
            is_complete: false,
        };
        self.memory.change(&self.actor, *reserved, more, false)?;
        *reserved = more;
        Ok(())
    }

    /// Reserves what the complete response has: what it was made of is released.
    ///
    /// # Errors
    /// When it is larger than what was reserved, and there is no memory for that. It is counted all the same.
    pub fn complete(&self, bytes: usize) -> Result<(), NoResponseMemory> {
        let mut reserved = self.reserved();
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

    fn reserved(&self) -> MutexGuard<'_, Reserved> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ResponseReservation {
    fn drop(&mut self) {
        let reserved = *self.reserved();
        let nothing = Reserved::default();
        let _ = self.memory.change(&self.actor, reserved, nothing, true);
    }
}

impl Reserved {
    /// What counts for the actor.
    fn of_actor(self) -> usize {
        if self.response > UNCOUNTED_RESPONSE_BYTES_MAX {
            self.response
        } else {
            0
        }
    }

    /// What counts for all: while a response is made, what it is made of is in memory as well.
    fn in_total(self) -> usize {
        if self.is_complete {
            self.of_actor()
        } else {
            self.of_actor().saturating_mul(COPIES_WHILE_MADE)
        }
    }
}

/// The largest response that isn't counted, in bytes. The number of requests in progress bounds the memory of such responses.
/// So a response with one value needs no memory that others could have taken.
pub const UNCOUNTED_RESPONSE_BYTES_MAX: usize = 128 * 1024;

/// How often the content of a response is in memory while the response is made: encrypted or decrypted, and rendered.
const COPIES_WHILE_MADE: usize = 2;

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

    #[test]
    fn one_byte_past_each_limit_is_refused() {
        let memory = memory();
        let first = memory.begin("one");
        let too_large = Err(NoResponseMemory::TooLarge(4 * MIB));
        assert_eq!(first.reserve(4 * MIB + 1), too_large);
        assert_eq!(first.reserve(4 * MIB), Ok(()));
        assert_eq!(first.reserve(1), too_large);
        assert_eq!(memory.used_bytes(), 8 * MIB);
        let second = memory.begin("one");
        let taken = Err(NoResponseMemory::ActorsTaken);
        assert_eq!(second.reserve(2 * MIB + 1), taken);
        assert_eq!(second.reserve(2 * MIB), Ok(()));
        let other = memory.begin("other");
        assert_eq!(other.reserve(2 * MIB + 1), Err(NoResponseMemory::AllTaken));
        assert_eq!(other.reserve(2 * MIB), Ok(()));
        assert_eq!(memory.used_bytes(), 16 * MIB);
        drop((first, second, other));
        assert_eq!(memory.used_bytes(), 0);
        assert!(memory.used().by_actor.is_empty());
    }

    #[test]
    fn a_complete_response_counts_once() {
        let memory = memory();
        let reservation = memory.begin("one");
        reservation.reserve(3 * MIB).unwrap();
        assert_eq!(reservation.complete(2 * MIB), Ok(()));
        assert_eq!(memory.used_bytes(), 2 * MIB);
    }

    #[test]
    fn a_complete_response_counts_even_if_refused() {
        let memory = memory();
        let reservation = memory.begin("one");
        let refused = reservation.complete(5 * MIB);
        assert_eq!(refused, Err(NoResponseMemory::TooLarge(4 * MIB)));
        assert_eq!(memory.used_bytes(), 5 * MIB);
        drop(reservation);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn small_responses_need_no_memory_of_others() {
        let memory = memory();
        let large: Vec<_> = ["one", "two"]
            .into_iter()
            .map(|actor| {
                let reservation = memory.begin(actor);
                reservation.reserve(4 * MIB).unwrap();
                reservation
            })
            .collect();
        let small = memory.begin("one");
        assert_eq!(small.reserve(UNCOUNTED_RESPONSE_BYTES_MAX), Ok(()));
        assert_eq!(small.reserve(1), Err(NoResponseMemory::AllTaken));
        drop(large);
    }
}
