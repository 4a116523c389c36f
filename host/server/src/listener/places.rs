//! Limits open connections, in total and per address.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The slots for connections.
pub(super) struct Places {
    count: usize,
    free: Arc<Semaphore>,
    of_one_address_max: usize,
    taken: Arc<Taken>,
}

/// A free slot, released on drop.
pub(super) struct Place(#[expect(dead_code, reason = "held until dropped")] OwnedSemaphorePermit);

/// A slot used by a client, released on drop.
pub(super) struct TakenPlace {
    source: IpAddr,
    taken: Arc<Taken>,
    _place: Place,
}

/// The number of slots used per source. There are at most as many sources as slots.
#[derive(Default)]
struct Taken {
    by_source: Mutex<HashMap<IpAddr, usize>>,
    /// Notified of each released slot.
    left: Notify,
}

impl Places {
    pub(super) fn new(count: usize, of_one_address_max: usize) -> Self {
        Self {
            count,
            free: Arc::new(Semaphore::new(count)),
            of_one_address_max,
            taken: Arc::default(),
        }
    }

    /// Returns a slot, if one is free.
    pub(super) fn free_place(&self) -> Option<Place> {
        Arc::clone(&self.free).try_acquire_owned().ok().map(Place)
    }

    /// Waits for a free slot.
    pub(super) async fn wait_for_place(&self) -> Option<Place> {
        Arc::clone(&self.free).acquire_owned().await.ok().map(Place)
    }

    /// Waits until a client has released a slot since the last call.
    pub(super) async fn left(&self) {
        self.taken.left.notified().await;
    }

    /// Returns whether enough slots are free again. A slot that no client uses yet is free.
    pub(super) fn are_plenty(&self) -> bool {
        let taken: usize = self.taken.by_source().values().sum();
        self.count.saturating_sub(taken) >= self.count.div_ceil(PLENTY)
    }

    /// Uses a slot for a client, unless its address has reached its limit.
    pub(super) fn take(&self, place: Place, client: IpAddr) -> Option<TakenPlace> {
        let source = source(client);
        let mut taken = self.taken.by_source();
        let count = taken.entry(source).or_default();
        if *count >= self.of_one_address_max {
            return None;
        }
        *count = count.saturating_add(1);
        Some(TakenPlace {
            source,
            taken: Arc::clone(&self.taken),
            _place: place,
        })
    }
}

impl Taken {
    fn by_source(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // No code under this lock can panic halfway.
        self.by_source
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        let mut taken = self.taken.by_source();
        if let Entry::Occupied(mut count) = taken.entry(self.source) {
            *count.get_mut() = count.get().saturating_sub(1);
            if *count.get() == 0 {
                count.remove();
            }
        }
        drop(taken);
        self.taken.left.notify_one();
    }
}

/// Returns the source of a client: its IPv4 address in canonical form, or its /64 network of IPv6, which usually
/// belongs to one client.
fn source(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK_MASK).into(),
    }
}

const NETWORK_MASK: u128 = !0 << 64;

/// One in this many slots is enough.
const PLENTY: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(places: &Places, client: &str) -> Option<TakenPlace> {
        places.take(places.free_place().unwrap(), client.parse().unwrap())
    }

    #[test]
    fn an_address_uses_up_to_its_limit_and_can_reuse_slots() {
        let places = Places::new(8, 2);
        let first = taken(&places, "192.0.2.1").unwrap();
        let _second = taken(&places, "192.0.2.1").unwrap();
        assert!(taken(&places, "192.0.2.1").is_none());
        let _other = taken(&places, "192.0.2.2").unwrap();
        drop(first);
        let _third = taken(&places, "192.0.2.1").unwrap();
        assert!(taken(&places, "192.0.2.1").is_none());
        assert_eq!(places.free.available_permits(), 5);
    }

    #[test]
    fn addresses_of_one_network_or_host_count_together() {
        for (one, other, are_one) in [
            ("2001:db8::1", "2001:db8::ffff:0:0:2", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            let places = Places::new(8, 1);
            let _one = taken(&places, one).unwrap();
            assert_eq!(taken(&places, other).is_none(), are_one, "{one} {other}");
        }
    }

    #[tokio::test]
    async fn slots_are_plenty_once_enough_are_released() {
        for (count, few) in [(1, 0), (2, 0), (16, 0), (17, 1), (32, 1)] {
            let places = Places::new(count, count);
            let mut kept: Vec<_> = (0..count)
                .filter_map(|_| taken(&places, "192.0.2.1"))
                .collect();
            assert!(!places.are_plenty());
            kept.truncate(count - few - 1);
            places.left().await;
            assert!(places.are_plenty(), "{count}");
            let next = places.free_place();
            assert!(places.are_plenty(), "{count}");
            drop(next);
        }
    }

    #[test]
    fn addresses_without_connections_are_forgotten() {
        let places = Places::new(8, 2);
        for last in 0..=255_u8 {
            drop(taken(&places, &format!("192.0.2.{last}")));
        }
        assert!(places.taken.by_source().is_empty());
    }
}
