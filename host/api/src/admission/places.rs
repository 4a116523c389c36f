//! Limits requests in progress, in total and per actor.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The slots for requests.
pub(super) struct RequestPlaces {
    count: usize,
    of_one_actor_max: usize,
    taken: Arc<Mutex<Taken>>,
}

/// The slot of one request, released on drop.
pub(crate) struct RequestPlace {
    actor: Arc<str>,
    taken: Arc<Mutex<Taken>>,
}

/// The reason why a request gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All slots are in use.
    AllTaken,
    /// The actor has reached its limit.
    ActorsTaken,
}

/// The number of slots in use, in total and per actor. There are at most as many actors as slots.
#[derive(Default)]
struct Taken {
    by_all: usize,
    by_actor: HashMap<Arc<str>, usize>,
}

impl RequestPlaces {
    pub(super) fn new(count: usize, of_one_actor_max: usize) -> Self {
        Self {
            count,
            of_one_actor_max,
            taken: Arc::default(),
        }
    }

    /// Takes a slot for a request of this actor.
    pub(super) fn take(&self, actor: &str) -> Result<RequestPlace, NoPlace> {
        let mut taken = lock(&self.taken);
        let known = taken.by_actor.get_key_value(actor);
        let (actor, of_actor) = known.map_or_else(
            || (Arc::from(actor), 0),
            |(actor, count)| (Arc::clone(actor), *count),
        );
        if of_actor >= self.of_one_actor_max {
            return Err(NoPlace::ActorsTaken);
        }
        if taken.by_all >= self.count {
            return Err(NoPlace::AllTaken);
        }
        taken.by_all = taken.by_all.saturating_add(1);
        taken
            .by_actor
            .insert(Arc::clone(&actor), of_actor.saturating_add(1));
        Ok(RequestPlace {
            actor,
            taken: Arc::clone(&self.taken),
        })
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    // No code under this lock can panic halfway.
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.by_all = taken.by_all.saturating_sub(1);
        match taken.by_actor.get_mut(&self.actor) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.by_actor.remove(&self.actor)),
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
        assert_eq!(lock(&places.taken).by_all, 1);
    }

    #[test]
    fn nothing_is_remembered_of_actors_without_requests() {
        let places = RequestPlaces::new(2, 1);
        for number in 0..100 {
            drop(places.take(&number.to_string()).unwrap());
        }
        assert!(lock(&places.taken).by_actor.is_empty());
    }
}
