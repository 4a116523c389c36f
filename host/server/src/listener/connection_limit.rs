//! Limits open connections, in total and per address.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::Arc,
};

use keywright_api::client_network;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The slots for connections. Each connection uses one slot.
pub(super) struct ConnectionLimit {
    count: usize,
    free: Arc<Semaphore>,
    per_address_max: usize,
    used: Arc<UsedSlots>,
}

/// A free slot, released on drop.
pub(super) struct Slot(#[expect(dead_code, reason = "held until dropped")] OwnedSemaphorePermit);

/// A slot used by a client, released on drop.
pub(super) struct UsedSlot {
    source: IpAddr,
    used: Arc<UsedSlots>,
    _slot: Slot,
}

/// The number of slots used per source. There are at most as many sources as slots.
#[derive(Default)]
struct UsedSlots {
    by_source: Mutex<HashMap<IpAddr, usize>>,
    /// Notified of each released slot.
    released: Notify,
}

impl ConnectionLimit {
    pub(super) fn new(count: usize, per_address_max: usize) -> Self {
        Self {
            count,
            free: Arc::new(Semaphore::new(count)),
            per_address_max,
            used: Arc::default(),
        }
    }

    pub(super) fn free_slot(&self) -> Option<Slot> {
        Arc::clone(&self.free).try_acquire_owned().ok().map(Slot)
    }

    pub(super) async fn wait_for_slot(&self) -> Option<Slot> {
        Arc::clone(&self.free).acquire_owned().await.ok().map(Slot)
    }

    /// Waits until a client has released a slot since the last call.
    pub(super) async fn slot_released(&self) {
        self.used.released.notified().await;
    }

    /// Returns whether enough slots are free again. A slot that no client uses yet is free.
    pub(super) fn has_plenty(&self) -> bool {
        let used: usize = self.used.by_source.lock().values().sum();
        self.count.saturating_sub(used) >= self.count.div_ceil(PLENTY_DIVISOR)
    }

    /// Uses a slot for a client, unless its address has reached its limit.
    pub(super) fn assign(&self, slot: Slot, client: IpAddr) -> Option<UsedSlot> {
        let source = client_network(client);
        let mut used = self.used.by_source.lock();
        let count = used.entry(source).or_default();
        if *count >= self.per_address_max {
            return None;
        }
        *count = count.saturating_add(1);
        Some(UsedSlot {
            source,
            used: Arc::clone(&self.used),
            _slot: slot,
        })
    }
}

impl Drop for UsedSlot {
    fn drop(&mut self) {
        let mut used = self.used.by_source.lock();
        if let Entry::Occupied(mut count) = used.entry(self.source) {
            *count.get_mut() = count.get().saturating_sub(1);
            if *count.get() == 0 {
                count.remove();
            }
        }
        drop(used);
        self.used.released.notify_one();
    }
}

/// Enough slots are free if their number is at least the total divided by this number.
const PLENTY_DIVISOR: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn take(limit: &ConnectionLimit, client: &str) -> Option<UsedSlot> {
        limit.assign(limit.free_slot().unwrap(), client.parse().unwrap())
    }

    #[test]
    fn addresses_of_one_network_or_host_count_together() {
        for (one, other, are_one) in [
            ("2001:db8::1", "2001:db8::ffff:0:0:2", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            let limit = ConnectionLimit::new(8, 1);
            let _one = take(&limit, one).unwrap();
            assert_eq!(take(&limit, other).is_none(), are_one, "{one} {other}");
        }
    }

    #[tokio::test]
    async fn slots_are_plentiful_again_once_enough_are_released() {
        for (count, few) in [(1, 0), (2, 0), (16, 0), (17, 1), (32, 1)] {
            let limit = ConnectionLimit::new(count, count);
            let mut used: Vec<_> = (0..count)
                .filter_map(|_| take(&limit, "192.0.2.1"))
                .collect();
            assert!(!limit.has_plenty());
            used.truncate(count - few - 1);
            limit.slot_released().await;
            assert!(limit.has_plenty(), "{count}");
            let next = limit.free_slot();
            assert!(limit.has_plenty(), "{count}");
            drop(next);
        }
    }

    #[test]
    fn addresses_without_connections_are_forgotten() {
        let limit = ConnectionLimit::new(8, 2);
        for last in 0..=255_u8 {
            drop(take(&limit, &format!("192.0.2.{last}")));
        }
        assert!(limit.used.by_source.lock().is_empty());
    }
}
