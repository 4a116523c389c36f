//! Requests during a rotation.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use keywright_harness::{Caller, Server, is_on_postgres, run_sql, shared_storage, until};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{
    CANARY, FAST, Keys, SLOW, Values, assert_values, counted, seed, set, until_inactive, values_of,
};

/// Each request must succeed, and each read must return the written value. Afterwards, everything is unchanged under
/// the active key. One server starts the rotation slowly. Another server continues it fast once all kinds of requests
/// are in progress. `KEYWRIGHT_TEST_ROTATION_VERSIONS` sets the number of versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_writes_and_deletes_succeed_during_a_rotation() {
    let versions = versions();
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], FAST)).await;
    let begun = std::time::Instant::now();
    let mut values = seed(&server, versions).await;
    println!("{versions} versions were set in {:?}", begun.elapsed());

    let slow = keys.options(&["b", "a"], SLOW);
    let slow = Server::start_in(server.stop().await, &slow).await;
    let paced = "batch_versions = 25\npause_milliseconds = 5\ninterval_seconds = 1";
    let pace = std::env::var_os("KEYWRIGHT_TEST_ROTATION_VERSIONS").map_or(paced, |_| "");
    let storage = shared_storage(slow.directory());
    let options = keys.options(&["b", "a"], pace).storage(&storage);
    let server = Server::start_in(TempDir::new().unwrap(), &options).await;
    let begun = std::time::Instant::now();
    until_inactive(&server, |inactive| inactive < versions as u64).await;
    let load = Load::begin(&server, &values).await;
    load.until_started().await;
    assert_no_plaintext(slow.directory()).await;
    let [rotated, left, _] = super::usage(&server).await;
    assert!(rotated > 0 && left > 0, "{rotated} {left}");
    // Keeps the folder: on SQLite, it contains the file that both servers use.
    let folder = slow.stop().await;
    load.speed_up();
    let is_over = AtomicBool::new(false);
    let watched = async {
        until_inactive(&server, |inactive| inactive == 0).await;
        is_over.store(true, Ordering::Release);
    };
    let checked = async {
        while !is_over.load(Ordering::Acquire) {
            assert_no_plaintext(folder.path()).await;
            // The check may complete without yielding to the scheduler.
            tokio::time::sleep(super::POLL).await;
        }
    };
    tokio::join!(watched, checked);
    let took = begun.elapsed();
    let done = load.finish().await;
    println!("rotated in {took:?}, during {} requests", done.requests);

    for name in &done.deleted {
        values.remove(name);
        let response = server.get(&format!("/api/v1/data?name={name}")).await;
        response.expect(404);
    }
    values.extend(done.written);
    assert_values(&server, &values).await;
    let stored: usize = values.values().map(Vec::len).sum();
    let [active, inactive, unknown] = super::usage(&server).await;
    assert_eq!((active, inactive, unknown), (stored as u64, 0, 0));
    let (rotated, failed) = counted(&server).await;
    assert!(
        rotated > 0.0 && failed.abs() < f64::EPSILON,
        "{rotated} {failed}"
    );
    assert_no_plaintext(folder.path()).await;
    server.stop().await;
    // Versions under the active key need no other key.
    let server = Server::start_in(folder, &keys.options(&["b"], FAST)).await;
    assert_values(&server, &values).await;
}

fn versions() -> usize {
    let versions = std::env::var("KEYWRIGHT_TEST_ROTATION_VERSIONS");
    versions.map_or(1_500, |number| number.parse().unwrap())
}

/// Asserts that no row and no file contains a plaintext value.
async fn assert_no_plaintext(directory: &Path) {
    let holds = if is_on_postgres() {
        format!("position(convert_to('{CANARY}', 'UTF8') in ciphertext) > 0")
    } else {
        format!("instr(ciphertext, cast('{CANARY}' as blob)) > 0")
    };
    let sql = format!("select count(*) from credential_version where {holds}");
    assert_eq!(run_sql(directory, &sql).await, "0");
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let mut windows = bytes.windows(CANARY.len());
        assert!(
            !windows.any(|part| part == CANARY.as_bytes()),
            "{}",
            path.display()
        );
    }
}

/// Requests that continue until stopped.
struct Load {
    tasks: JoinSet<Done>,
    is_over: Arc<AtomicBool>,
    progress: Arc<Progress>,
}

/// The number of completed requests of each kind, and whether the rotation is fast.
#[derive(Default)]
struct Progress {
    read: AtomicUsize,
    written: AtomicUsize,
    deleted: AtomicUsize,
    is_fast: AtomicBool,
}

/// The completed requests.
#[derive(Default)]
struct Done {
    requests: usize,
    written: Values,
    deleted: Vec<String>,
}

impl Load {
    async fn begin(server: &Server, values: &Values) -> Self {
        let caller = server.as_client("developer").await;
        let is_over = Arc::new(AtomicBool::new(false));
        let progress = Arc::<Progress>::default();
        let mut tasks = JoinSet::new();
        let names: Vec<String> = values.keys().cloned().collect();
        let (to_delete, to_read) = names.split_at(DELETED.min(names.len() / 2));
        for task in 0..READERS {
            let values: Vec<(String, Vec<String>)> = to_read
                .iter()
                .skip(task)
                .step_by(READERS)
                .map(|name| (name.clone(), values[name].clone()))
                .collect();
            let (over, progress) = (Arc::clone(&is_over), Arc::clone(&progress));
            tasks.spawn(read(caller.clone(), values, over, progress));
        }
        for task in 0..WRITERS {
            let (over, progress) = (Arc::clone(&is_over), Arc::clone(&progress));
            tasks.spawn(write(caller.clone(), task, over, progress));
        }
        let deleting = delete(caller, to_delete.to_vec(), Arc::clone(&progress));
        tasks.spawn(deleting);
        Self {
            tasks,
            is_over,
            progress,
        }
    }

    /// Waits until every kind of request has completed at least once per task.
    async fn until_started(&self) {
        let is_started = || {
            let Progress {
                read,
                written,
                deleted,
                ..
            } = &*self.progress;
            [(read, READERS), (written, WRITERS), (deleted, 1)]
                .iter()
                .all(|(responded, enough)| responded.load(Ordering::Acquire) >= *enough)
        };
        until("completed requests", async || is_started()).await;
    }

    /// Allows the deletion of the second half of the names, which is reserved for the fast part of the rotation.
    fn speed_up(&self) {
        self.progress.is_fast.store(true, Ordering::Release);
    }

    async fn finish(self) -> Done {
        self.is_over.store(true, Ordering::Release);
        let all = self.tasks.join_all().await.into_iter();
        all.fold(Done::default(), |mut sum, done| {
            sum.requests += done.requests;
            sum.written.extend(done.written);
            sum.deleted.extend(done.deleted);
            sum
        })
    }
}

async fn read(
    caller: Caller,
    values: Vec<(String, Vec<String>)>,
    is_over: Arc<AtomicBool>,
    progress: Arc<Progress>,
) -> Done {
    let mut done = Done::default();
    for (name, expected) in values.iter().cycle() {
        let response = caller.get(&format!("/api/v1/data?name={name}")).await;
        assert_eq!(values_of(&response.expect(200)), *expected, "{name}");
        done.requests += 1;
        progress.read.fetch_add(1, Ordering::AcqRel);
        if is_over.load(Ordering::Acquire) {
            break;
        }
    }
    done
}

async fn write(
    caller: Caller,
    task: usize,
    is_over: Arc<AtomicBool>,
    progress: Arc<Progress>,
) -> Done {
    let mut done = Done::default();
    for number in 0.. {
        let name = format!("/written/{task}/{}", number % 5);
        let text = format!("{CANARY}{task}-{number}");
        set(&caller, &name, &text).await.expect(200);
        done.written.entry(name).or_default().insert(0, text);
        done.requests += 1;
        progress.written.fetch_add(1, Ordering::AcqRel);
        if is_over.load(Ordering::Acquire) {
            break;
        }
    }
    done
}

async fn delete(caller: Caller, names: Vec<String>, progress: Arc<Progress>) -> Done {
    for (position, name) in names.iter().enumerate() {
        while position >= names.len() / 2 && !progress.is_fast.load(Ordering::Acquire) {
            tokio::time::sleep(super::POLL).await;
        }
        let response = caller.delete(&format!("/api/v1/data?name={name}")).await;
        response.expect(204);
        progress.deleted.fetch_add(1, Ordering::AcqRel);
    }
    Done {
        requests: names.len(),
        deleted: names,
        ..Done::default()
    }
}

const READERS: usize = 3;
const WRITERS: usize = 2;
const DELETED: usize = 20;
