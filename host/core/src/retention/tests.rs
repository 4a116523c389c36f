use std::sync::Mutex;

use async_trait::async_trait;
use chrono::TimeDelta;

use super::*;
use crate::{
    credential::CredentialName,
    permission::PermissionPath,
    ports::{ClockRecord, RetentionPage},
};

/// Credentials in memory, reduced to their names and the sequences of their versions.
#[derive(Default)]
struct World {
    /// The names in order, each with the sequences of its deletable versions.
    credentials: Mutex<Vec<(&'static str, Vec<i64>)>>,
    /// The sequences of versions that are not deleted on request.
    stays: Vec<i64>,
    is_unavailable: bool,
    is_trail_broken: bool,
    recorded: Mutex<Vec<String>>,
}

impl World {
    fn recorded(&self) -> Vec<String> {
        self.recorded.lock().unwrap().clone()
    }

    fn record(&self, event: &str, deletion: &RetentionDeletion<'_>) {
        let ids: Vec<u128> = deletion.version_ids.iter().map(Uuid::as_u128).collect();
        let line = format!("{event} {} {ids:?}", deletion.credential.name);
        self.recorded.lock().unwrap().push(line);
    }

    /// Returns the remaining versions of a credential.
    fn left(&self, id: Uuid) -> Vec<i64> {
        let index = usize::try_from(id.as_u128()).unwrap();
        self.credentials.lock().unwrap()[index].1.clone()
    }
}

#[async_trait]
impl RetentionRepository for World {
    async fn page(
        &self,
        names: &NameRange,
        _: RetentionThreshold,
        count_max: u32,
    ) -> Result<RetentionPage, RepositoryFailure> {
        let credentials = self.credentials.lock().unwrap();
        let is_within = |name: &str| *names.from <= *name && *name < *names.before;
        let found = credentials.iter().zip(0..);
        let found = found.filter(|((name, _), _)| is_within(name));
        let found: Vec<_> = found.take(count_max as usize).collect();
        let is_full = found.len() == count_max as usize;
        let last = found.last().filter(|_| is_full);
        Ok(RetentionPage {
            rest: last.map(|((name, _), _)| names.after(name)),
            exceeding: found
                .iter()
                .map(|((name, _), id)| ExceedingCredential {
                    id: Uuid::from_u128(*id),
                    name: CredentialName::parse(name).unwrap(),
                })
                .collect(),
        })
    }

    async fn deletable_versions(
        &self,
        credential_id: Uuid,
        _: RetentionThreshold,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<DeletableVersion>, RepositoryFailure> {
        let left = self.left(credential_id).into_iter();
        let after = left.filter(|sequence| *sequence > after_sequence);
        let found = after.take(count_max as usize);
        Ok(found
            .map(|sequence| DeletableVersion {
                id: Uuid::from_u128(sequence.unsigned_abs().into()),
                sequence,
            })
            .collect())
    }

    async fn delete_versions(
        &self,
        credential_id: Uuid,
        _: RetentionThreshold,
        version_ids: &[Uuid],
    ) -> Result<Vec<Uuid>, RepositoryFailure> {
        if self.is_unavailable {
            return Err(RepositoryFailure::Unavailable("connection refused".into()));
        }
        let sequence_of = |id: &Uuid| i64::try_from(id.as_u128()).unwrap();
        let is_deleted = |id: &&Uuid| !self.stays.contains(&sequence_of(id));
        let deleted: Vec<Uuid> = version_ids.iter().filter(is_deleted).copied().collect();
        let index = usize::try_from(credential_id.as_u128()).unwrap();
        let versions = &mut self.credentials.lock().unwrap()[index].1;
        versions.retain(|sequence| !deleted.iter().any(|id| sequence_of(id) == *sequence));
        Ok(deleted)
    }
}

#[async_trait]
impl RetentionTrail for World {
    async fn announce(&self, deletion: &RetentionDeletion<'_>) -> Result<(), TrailUnwritten> {
        if self.is_trail_broken {
            return Err(TrailUnwritten);
        }
        self.record("announced", deletion);
        Ok(())
    }

    fn take_back(&self, deletion: &RetentionDeletion<'_>, reason: NotDeleted) {
        self.record(&format!("{reason:?}"), deletion);
    }
}

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }
}

impl Identifiers for Fixed {
    fn fresh(&self) -> Uuid {
        Uuid::nil()
    }
}

fn retention(world: &Arc<World>, paths: &[&str]) -> Retention {
    let policies = paths.iter().map(|path| RetentionPolicy {
        path: PermissionPath::parse(path).unwrap(),
        kept: Kept::Within(RetentionLimits::new(std::num::NonZeroU32::new(1), None).unwrap()),
    });
    Retention {
        policies: RetentionPolicies::new(policies.collect()).unwrap(),
        repository: Arc::<World>::clone(world),
        trail: Some(Arc::<World>::clone(world)),
        clock: Arc::new(Fixed),
        identifiers: Arc::new(Fixed),
    }
}

/// Completes a run and returns the number of versions that it deleted.
async fn run(retention: &Retention) -> Result<u64, RetentionFailure> {
    let mut run = retention.begin(true);
    while retention.proceed(&mut run).await? == RetentionProgress::Further {}
    Ok(run.versions_deleted())
}

fn world(credentials: &[(&'static str, std::ops::Range<i64>)]) -> World {
    let credentials = credentials.iter();
    let credentials = credentials.map(|(name, versions)| (*name, versions.clone().collect()));
    World {
        credentials: Mutex::new(credentials.collect()),
        ..World::default()
    }
}

#[tokio::test]
async fn a_run_announces_and_deletes_versions_of_all_stretches() {
    let world = world(&[("/a/1", 1..3), ("/b", 3..4), ("/c", 4..6), ("/c/1", 6..8)]);
    let world = Arc::new(world);
    let deleted = run(&retention(&world, &["/a/*", "/c/*", "/c", "/d/*"])).await;
    assert_eq!(deleted.unwrap(), 6);
    assert_eq!(
        world.recorded(),
        [
            "announced /a/1 [1, 2]",
            "announced /c [4, 5]",
            "announced /c/1 [6, 7]"
        ]
    );
    assert_eq!(world.left(Uuid::from_u128(1)), [3]);
}

#[tokio::test]
async fn a_step_deletes_one_batch_and_the_next_step_continues() {
    let batch = i64::from(BATCH_VERSIONS_MAX);
    for (versions, announcements) in [(batch - 1, 1), (batch, 1), (batch + 1, 2), (3 * batch, 3)] {
        let mut world = world(&[("/a", 1..versions + 1)]);
        // Versions that stay are not found repeatedly.
        world.stays = vec![1, batch];
        let stays = world
            .stays
            .iter()
            .filter(|stays| **stays <= versions)
            .count();
        let world = Arc::new(world);
        let deleted = run(&retention(&world, &["/*"])).await.unwrap();
        assert_eq!(deleted, versions.unsigned_abs() - stays as u64);
        let recorded = world.recorded();
        let announced = recorded.iter().filter(|line| line.starts_with("announced"));
        assert_eq!(announced.count(), announcements, "{versions}");
    }
}

#[tokio::test]
async fn a_step_searches_one_page_and_the_next_step_continues() {
    let mut world = World::default();
    let count = usize::try_from(PAGE_CREDENTIALS_MAX).unwrap() + 1;
    let names: Vec<&'static str> = (0..count)
        .map(|number| &*Box::leak(format!("/{number:05}").into_boxed_str()))
        .collect();
    world.credentials = Mutex::new(names.iter().map(|name| (*name, vec![1])).collect());
    let world = Arc::new(world);
    let deleted = run(&retention(&world, &["/*"])).await.unwrap();
    assert_eq!(deleted, count as u64);
}

#[tokio::test]
async fn nothing_is_deleted_if_the_announcement_fails() {
    let mut world = world(&[("/a", 1..3)]);
    world.is_trail_broken = true;
    let world = Arc::new(world);
    let outcome = run(&retention(&world, &["/*"])).await;
    assert!(matches!(outcome, Err(RetentionFailure::Trail(_))));
    assert_eq!(world.left(Uuid::nil()), [1, 2]);
}

#[tokio::test]
async fn announcements_of_versions_that_stay_are_taken_back() {
    let mut changed = world(&[("/a", 1..4)]);
    changed.stays = vec![2];
    let changed = Arc::new(changed);
    assert_eq!(run(&retention(&changed, &["/*"])).await.unwrap(), 2);
    assert_eq!(
        changed.recorded(),
        ["announced /a [1, 2, 3]", "Changed /a [2]"]
    );
    let mut unavailable = world(&[("/a", 1..3)]);
    unavailable.is_unavailable = true;
    let unavailable = Arc::new(unavailable);
    let outcome = run(&retention(&unavailable, &["/*"])).await;
    assert!(matches!(outcome, Err(RetentionFailure::Repository(_))));
    assert_eq!(
        unavailable.recorded(),
        ["announced /a [1, 2]", "Unconfirmed /a [1, 2]"]
    );
}

/// A clock reading: the uptime of the process, and the clock, in minutes since the first reading.
type Reading = (i64, i64);

/// Returns whether one process trusts the clock at the last of these readings, after a day without differences.
fn is_trusted_after(readings: &[Reading]) -> bool {
    let first = DateTime::UNIX_EPOCH + TimeDelta::days(10_000);
    let mut record = Some(ClockRecord {
        seen_at: first,
        trusted_from: first - TimeDelta::days(1),
    });
    let mut watch = ClockWatch::default();
    for (uptime, clock) in readings {
        let now = first + TimeDelta::minutes(*clock);
        record = Some(watch.look(now, TimeDelta::minutes(*uptime), record));
    }
    record.unwrap().is_trusted()
}

const DAY: i64 = 24 * 60;
const YEAR: i64 = 365 * DAY;

#[test]
fn a_clock_that_jumped_is_trusted_after_a_steady_day() {
    let evenly = |from: i64, jump: i64| -> Vec<Reading> {
        let minutes = (from..=from + DAY).step_by(10);
        minutes.map(|minute| (minute, minute + jump)).collect()
    };
    let jumping = |jump: i64, after: &[Reading]| -> Vec<Reading> {
        [&[(0, 0), (10, 10), (20, 20 + jump)], after].concat()
    };
    for (readings, is_trusted) in [
        (vec![(0, 0), (10, 10), (20, 20)], true),
        // Differences that NTP corrects.
        (jumping(10, &[]), true),
        (jumping(-10, &[]), true),
        (jumping(11, &[]), false),
        (jumping(-11, &[]), false),
        (jumping(YEAR, &[]), false),
        (jumping(YEAR, &[(30, 30 + YEAR)]), false),
        (jumping(YEAR, &evenly(21, YEAR)[..144]), false),
        (jumping(YEAR, &evenly(20, YEAR)), true),
        // The clock may be correct again or not.
        (jumping(YEAR, &[(30, 30)]), false),
        // Small jumps add up.
        (vec![(0, 0), (10, 18), (20, 31)], false),
        // The first reading of a process, some time after the last reading of other processes.
        (vec![(0, DAY)], true),
        (vec![(0, DAY + 1)], false),
        (vec![(0, -10)], true),
        (vec![(0, -11)], false),
    ] {
        assert_eq!(
            is_trusted_after(&readings),
            is_trusted,
            "{:?}",
            &readings[..readings.len().min(4)]
        );
    }
    let mut watch = ClockWatch::default();
    let first = watch.look(DateTime::UNIX_EPOCH, TimeDelta::zero(), None);
    assert!(!first.is_trusted(), "there was no earlier reading");
}

#[test]
fn a_run_with_an_untrusted_clock_ignores_age_limits() {
    let limits = RetentionLimits::new(None, std::num::NonZeroU32::new(1)).unwrap();
    assert_eq!(limits.at(None).created_before, None);
    let world = Arc::new(World::default());
    let retention = retention(&world, &["/*"]);
    assert_eq!(retention.begin(false).now, None);
}
