//! How many requests are under way: of all actors together, and of one.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of requests.
pub(super) struct RequestPlaces {
    free: Arc<Semaphore>,
    of_one_actor_max: usize,
    taken: Arc<Taken>,
}

/// The place of one request; it is free again when this is dropped.
pub(super) struct RequestPlace {
    actor: String,
    taken: Arc<Taken>,
    _of_all: OwnedSemaphorePermit,
}

/// Why a request gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All are taken.
    AllTaken,
    /// The actor has as many as it may.
    ActorsTaken,
}

/// How many places each actor has taken. It holds no more actors than there are places.
#[derive(Default)]
struct Taken(Mutex<HashMap<String, usize>>);

impl RequestPlaces {
    pub(super) fn new(count: usize, of_one_actor_max: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(count)),
            of_one_actor_max,
            taken: Arc::default(),
        }
    }

    /// Takes a place for a request of this actor.
    ///
    /// # Errors
    /// When there is none for it.
    pub(super) fn take(&self, actor: &str) -> Result<RequestPlace, NoPlace> {
        let mut taken = self.taken.by_actor();
        if taken.get(actor).copied().unwrap_or(0) >= self.of_one_actor_max {
            return Err(NoPlace::ActorsTaken);
        }
        let of_all = Arc::clone(&self.free)
            .try_acquire_owned()
            .map_err(|_| NoPlace::AllTaken)?;
        let count = taken.entry(actor.to_owned()).or_default();
        *count = count.saturating_add(1);
        Ok(RequestPlace {
            actor: actor.to_owned(),
            taken: Arc::clone(&self.taken),
            _of_all: of_all,
        })
    }
}

impl Taken {
    fn by_actor(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        // Nothing that is done under this lock can panic halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        let mut taken = self.taken.by_actor();
        if let Entry::Occupied(mut count) = taken.entry(std::mem::take(&mut self.actor)) {
            *count.get_mut() = count.get().saturating_sub(1);
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_takes_no_more_than_its_share_and_all_no_more_than_there_are() {
        let places = RequestPlaces::new(3, 2);
        let first = places.take("one").unwrap();
        let second = places.take("one").unwrap();
        assert_eq!(places.take("one").err(), Some(NoPlace::ActorsTaken));
        let others = places.take("other").unwrap();
        assert_eq!(places.take("third").err(), Some(NoPlace::AllTaken));
        drop(first);
        let _again = places.take("one").unwrap();
        assert_eq!(places.take("one").err(), Some(NoPlace::ActorsTaken));
        drop((second, others));
        assert_eq!(places.free.available_permits(), 2);
    }

    #[test]
    fn nothing_is_remembered_of_actors_without_requests() {
        let places = RequestPlaces::new(2, 1);
        for number in 0..100 {
            drop(places.take(&number.to_string()).unwrap());
        }
        assert!(places.taken.by_actor().is_empty());
    }
}
