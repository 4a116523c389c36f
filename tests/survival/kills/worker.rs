use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use keywright_harness::{Caller, Response};
use rand::{RngExt, rngs::ChaCha12Rng, seq::IteratorRandom};
use serde_json::Value;

use super::{
    certificates,
    requests::{self, Location, Owned, Records, Request, Step, at, record_matches, records_match},
    shared::{self, SharedWrite},
};

/// One of several concurrent writers that track the expected state. It owns everything below `/{number}/`.
pub(super) struct Worker {
    number: usize,
    choices: ChaCha12Rng,
    /// The expected records, as far as they are known.
    records: Records,
    /// The locations that have changed since the worker last read them from a restarted server.
    touched: BTreeSet<Location>,
    /// The request that may or may not have taken effect.
    in_progress: Option<Request>,
    /// Its writes to shared credentials.
    pub(super) shared: Vec<SharedWrite>,
    /// The ids of acknowledged write requests.
    pub(super) acknowledged: Vec<String>,
    pub(super) interrupted: Interrupted,
}

/// The outcomes of requests that were in progress at a kill.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interrupted {
    /// The number of requests that took effect.
    pub(super) done: usize,
    /// The number of requests that did not take effect.
    pub(super) undone: usize,
}

#[derive(Debug, Default)]
pub(super) struct RoundEvents {
    is_killed: AtomicBool,
    is_without_database: AtomicBool,
    writes: AtomicUsize,
}

impl RoundEvents {
    /// Returns the number of acknowledged writes so far.
    pub(super) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// Records that the server is about to be killed: requests may fail from now on.
    pub(super) fn kill(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
    }

    /// Records that the database is about to be killed: requests may get status 503 from now on.
    pub(super) fn stop_database(&self) {
        self.is_without_database.store(true, Ordering::SeqCst);
    }

    fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::SeqCst)
    }

    fn is_without_database(&self) -> bool {
        self.is_without_database.load(Ordering::SeqCst)
    }
}

impl Worker {
    /// Creates a worker that has not written anything.
    pub(super) fn new(number: usize, choices: ChaCha12Rng) -> Self {
        Self {
            number,
            choices,
            records: Records::new(),
            touched: BTreeSet::new(),
            in_progress: None,
            shared: Vec::new(),
            acknowledged: Vec::new(),
            interrupted: Interrupted::default(),
        }
    }

    /// Writes and reads until the server or its database is killed.
    pub(super) async fn work(&mut self, caller: &Caller, events: &RoundEvents) {
        while self.act(caller, events).await.is_some() {}
        let is_expected = events.is_killed() || events.is_without_database();
        let in_progress = self.in_progress.as_ref().map(Request::summary);
        assert!(
            is_expected,
            "this request failed, although nothing was killed: {in_progress:?}"
        );
    }

    /// Does one step; `None` if the server or its database was killed.
    async fn act(&mut self, caller: &Caller, events: &RoundEvents) -> Option<()> {
        let owned = Owned {
            number: self.number,
            records: &self.records,
        };
        let step = match self.choices.random_range(0..10) {
            0 if !self.records.is_empty() => {
                let known = self.records.keys().choose(&mut self.choices);
                Step::Read(known.unwrap().clone())
            }
            1 => return self.write_shared(caller).await,
            2 => requests::next_for_permissions(&owned, &mut self.choices),
            3..7 => Step::Write(requests::next_for_credentials(&owned, &mut self.choices)),
            _ => certificates::next(&owned, &mut self.choices),
        };
        match step {
            Step::Read(location) => self.read_and_verify(caller, location).await,
            Step::Write(request) => self.write(caller, events, request).await,
        }
    }

    /// Checks the known fields of the records at a location, and stores the complete records.
    async fn read_and_verify(&mut self, caller: &Caller, location: Location) -> Option<()> {
        let actual = location.read(caller).await?;
        let expected = at(&self.records, &location);
        assert!(
            records_match(expected, &actual),
            "{location:?}: expected {expected:#?}, found {actual:#?}"
        );
        self.records.insert(location, actual);
        Some(())
    }

    async fn write(
        &mut self,
        caller: &Caller,
        events: &RoundEvents,
        request: Request,
    ) -> Option<()> {
        let request = self.in_progress.insert(request);
        let response = request.send(caller).await?;
        if response.status == 503 && events.is_without_database() {
            return None;
        }
        if [429, 503].contains(&response.status) && request.may_be_refused {
            self.in_progress = None;
            return Some(());
        }
        let summary = request.summary();
        assert!(
            matches!(response.status, 200..=204),
            "{summary}: {response:?}"
        );
        self.acknowledge(&response);
        events.writes.fetch_add(1, Ordering::SeqCst);
        Some(())
    }

    /// Records an acknowledged write and its response.
    fn acknowledge(&mut self, response: &Response) {
        let request = self.in_progress.take().unwrap();
        self.acknowledged.push(request_id(response));
        let mut changes = request.changes;
        if let Some(location) = request.responded {
            let stored = stored_part(response);
            let before = at(&self.records, &location).first();
            if request.may_keep && before.is_some_and(|before| before["id"] == stored["id"]) {
                let before = before.unwrap();
                assert!(
                    record_matches(before, &stored),
                    "expected {before:#?} to be kept, but the response is {stored:#?}"
                );
                return;
            }
            let newest = &mut changes.get_mut(&location).unwrap()[0];
            assert!(
                record_matches(newest, &stored),
                "expected {newest:#?}, but the response is {stored:#?}"
            );
            *newest = stored;
        }
        self.touched.extend(changes.keys().cloned());
        self.records.extend(changes);
    }

    async fn write_shared(&mut self, caller: &Caller) -> Option<()> {
        let write = shared::next(self.number, &mut self.choices);
        self.shared.push(write);
        let write = self.shared.last_mut().unwrap();
        let response = write.send(caller).await?;
        if response.status == 503 {
            return None;
        }
        assert_eq!(response.status, 200, "{write:?}: {response:?}");
        self.acknowledged.push(request_id(&response));
        write.response = Some(stored_part(&response));
        Some(())
    }

    /// Asserts that a restarted server has all acknowledged writes, and all or nothing of the request in progress.
    pub(super) async fn verify_changed(&mut self, caller: &Caller) {
        let mut locations = std::mem::take(&mut self.touched);
        if let Some(request) = &self.in_progress {
            locations.extend(request.changes.keys().cloned());
        }
        self.verify(caller, locations).await;
    }

    /// Asserts that a server has exactly the expected records.
    pub(super) async fn verify_everything(&mut self, caller: &Caller) {
        let locations = self.records.keys().cloned().collect();
        self.verify(caller, locations).await;
    }

    async fn verify(&mut self, caller: &Caller, locations: BTreeSet<Location>) {
        let mut actual = Records::new();
        for location in locations {
            let read = location.read(caller).await.unwrap();
            actual.insert(location, read);
        }
        let in_progress = self.in_progress.take();
        let changes = in_progress.as_ref().map(|request| &request.changes);
        for (location, read) in &actual {
            let expected = at(&self.records, location);
            let may_differ = changes.is_some_and(|changes| changes.contains_key(location));
            assert!(
                may_differ || records_match(expected, read),
                "{location:?}: expected {expected:#?}, found {read:#?}"
            );
        }
        if let Some(changes) = changes {
            let is_undone = changes
                .keys()
                .all(|location| records_match(at(&self.records, location), &actual[location]));
            let is_done = changes
                .iter()
                .all(|(location, changed)| records_match(changed, &actual[location]));
            assert!(
                is_done || is_undone,
                "{} took effect partially: {actual:#?}",
                in_progress.unwrap().summary()
            );
            // If nothing was to change, both outcomes look the same.
            self.interrupted.done += usize::from(is_done && !is_undone);
            self.interrupted.undone += usize::from(is_undone && !is_done);
        }
        self.records.extend(actual);
        self.verify_found(caller).await;
    }

    /// Asserts that a search finds exactly this worker's credentials.
    async fn verify_found(&self, caller: &Caller) {
        let response = caller
            .get(&format!("/api/v1/data?path=/{}", self.number))
            .await;
        let found = response.expect(200).json();
        let found: BTreeSet<&str> = found["credentials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap())
            .collect();
        let expected = self
            .records
            .iter()
            .filter_map(|(location, records)| match location {
                Location::Credential(name) if !records.is_empty() => Some(name.as_str()),
                _ => None,
            });
        assert_eq!(found, expected.collect());
    }
}

/// Returns the stored part of a response, without issuance fields.
fn stored_part(response: &Response) -> Value {
    let mut stored = response.json();
    let fields = stored.as_object_mut().unwrap();
    fields.retain(|name, _| !ISSUANCE_FIELDS.contains(&name.as_str()));
    stored
}

fn request_id(response: &Response) -> String {
    response.header("x-request-id").unwrap().to_owned()
}

/// The fields that occur only in responses to requests that generate certificates.
const ISSUANCE_FIELDS: [&str; 3] = ["duration_overridden", "duration_used", "key_length"];
