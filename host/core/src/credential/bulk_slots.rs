//! The limit on concurrent requests that change many credentials. Each keeps all new versions in memory until it writes them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{UseCaseError, permission::Actor};

/// The maximum number of concurrent requests that change many credentials, each of a different actor: bulk regenerations,
/// including dry runs, and steps of a CA's rotation.
pub(super) const BULK_CHANGES_MAX: usize = 2;

/// The slots of requests that change many credentials: the actors that hold one.
#[derive(Clone, Default)]
pub(super) struct BulkSlots(Arc<Mutex<Vec<Actor>>>);

/// The slot of one request. Once it is taken, it is held until it is dropped.
pub(super) struct BulkSlot {
    slots: BulkSlots,
    actor: Actor,
    is_held: bool,
}

impl BulkSlots {
    /// Returns a slot for a request of this actor, without taking it.
    pub(super) fn of(&self, actor: &Actor) -> BulkSlot {
        BulkSlot {
            slots: self.clone(),
            actor: actor.clone(),
            is_held: false,
        }
    }

    fn holders(&self) -> MutexGuard<'_, Vec<Actor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BulkSlot {
    /// Returns the actor of the request.
    pub(super) fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Takes the slot, unless it is already held.
    ///
    /// # Errors
    /// If another request of this actor holds a slot, or all slots are held.
    pub(super) fn take(&mut self) -> Result<(), UseCaseError> {
        if self.is_held {
            return Ok(());
        }
        let mut holders = self.slots.holders();
        if holders.contains(&self.actor) {
            return Err(UseCaseError::BulkChangeOfActor);
        }
        if holders.len() >= BULK_CHANGES_MAX {
            return Err(UseCaseError::TooManyBulkChanges);
        }
        holders.push(self.actor.clone());
        self.is_held = true;
        Ok(())
    }
}

impl Drop for BulkSlot {
    fn drop(&mut self) {
        if self.is_held {
            self.slots.holders().retain(|holder| *holder != self.actor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_actor_may_hold_one_of_a_limited_number_of_slots() {
        let slots = BulkSlots::default();
        let of = |actor: usize| slots.of(&Actor::client(&actor.to_string()).unwrap());
        let mut held: Vec<_> = (0..BULK_CHANGES_MAX).map(of).collect();
        for slot in &mut held {
            assert!(slot.take().is_ok());
            assert!(slot.take().is_ok());
        }
        let refused = of(0).take();
        assert!(matches!(refused, Err(UseCaseError::BulkChangeOfActor)));
        let refused = of(BULK_CHANGES_MAX).take();
        assert!(matches!(refused, Err(UseCaseError::TooManyBulkChanges)));
        held.remove(0);
        let mut again = of(0);
        assert!(again.take().is_ok());
        assert!(of(BULK_CHANGES_MAX).take().is_err());
    }
}
