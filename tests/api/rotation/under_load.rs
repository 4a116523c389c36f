//! Requests while keys are rotated.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use keywright_harness::{Caller, Server, is_on_postgres, run_sql};
use tokio::task::JoinSet;

use super::{
    CANARY, FAST, Keys, Values, assert_values, counted, seed, set, until_inactive, values_of,
};

/// Each request must succeed, and each read must answer what was written; afterwards everything is under the active key, and
/// as it was. The number of versions is `KEYWRIGHT_TEST_ROTATION_VERSIONS`, so that it can be tried with many.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_writes_and_deletes_go_on_while_keys_are_rotated() {
    let versions = versions();
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], FAST)).await;
    let begun = std::time::Instant::now();
    let mut values = seed(&server, versions).await;
    println!("{versions} versions were set in {:?}", begun.elapsed());

    let paced = "batch_versions = 25\npause_milliseconds = 5\ninterval_seconds = 1";
    let pace = std::env::var_os("KEYWRIGHT_TEST_ROTATION_VERSIONS").map_or(paced, |_| "");
    let options = keys.options(&["b", "a"], pace);
    let server = Server::start_in(server.stop().await, &options).await;
    let begun = std::time::Instant::now();
    let load = Load::begin(&server, &values).await;
    let is_over = AtomicBool::new(false);
    let watched = async {
        until_inactive(&server, |inactive| inactive == 0).await;
        is_over.store(true, Ordering::Release);
    };
    let looked = async {
        let mut looks = 0;
        while !is_over.load(Ordering::Acquire) {
            assert_no_plaintext(server.directory()).await;
            looks += 1;
            // Looking may be one step that waits for nothing.
            tokio::time::sleep(super::POLL).await;
        }
        looks
    };
    let ((), looks, ()) = tokio::join!(watched, looked, load.until_some_were_deleted());
    assert!(looks > 0, "the rotation was over before anybody looked");
    let took = begun.elapsed();
    let done = load.finish().await;
    println!(
        "they were rotated in {took:?}, beside {} requests",
        done.requests
    );

    for name in &done.deleted {
        values.remove(name);
        let answer = server.get(&format!("/api/v1/data?name={name}")).await;
        answer.expect(404);
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
    assert_no_plaintext(server.directory()).await;
    // What is under the active key needs no other one.
    let server = Server::start_in(server.stop().await, &keys.options(&["b"], FAST)).await;
    assert_values(&server, &values).await;
}

fn versions() -> usize {
    let versions = std::env::var("KEYWRIGHT_TEST_ROTATION_VERSIONS");
    versions.map_or(1_500, |number| number.parse().unwrap())
}

/// Neither a row nor a file of the server holds a value as it was set.
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

/// Requests that go on until they are told to end.
struct Load {
    tasks: JoinSet<Done>,
    is_over: Arc<AtomicBool>,
    has_deleted: Arc<AtomicBool>,
}

/// What was requested.
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
        let has_deleted = Arc::new(AtomicBool::new(false));
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
            tasks.spawn(read(caller.clone(), values, Arc::clone(&is_over)));
        }
        for task in 0..WRITERS {
            tasks.spawn(write(caller.clone(), task, Arc::clone(&is_over)));
        }
        let deleting = delete(caller, to_delete.to_vec(), Arc::clone(&has_deleted));
        tasks.spawn(deleting);
        Self {
            tasks,
            is_over,
            has_deleted,
        }
    }

    async fn until_some_were_deleted(&self) {
        while !self.has_deleted.load(Ordering::Acquire) {
            tokio::time::sleep(super::POLL).await;
        }
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
) -> Done {
    let mut done = Done::default();
    for (name, expected) in values.iter().cycle() {
        let answer = caller.get(&format!("/api/v1/data?name={name}")).await;
        assert_eq!(values_of(&answer.expect(200)), *expected, "{name}");
        done.requests += 1;
        if is_over.load(Ordering::Acquire) {
            break;
        }
    }
    done
}

async fn write(caller: Caller, task: usize, is_over: Arc<AtomicBool>) -> Done {
    let mut done = Done::default();
    for number in 0.. {
        let name = format!("/written/{task}/{}", number % 5);
        let text = format!("{CANARY}{task}-{number}");
        set(&caller, &name, &text).await.expect(200);
        done.written.entry(name).or_default().insert(0, text);
        done.requests += 1;
        if is_over.load(Ordering::Acquire) {
            break;
        }
    }
    done
}

async fn delete(caller: Caller, names: Vec<String>, has_deleted: Arc<AtomicBool>) -> Done {
    for name in &names {
        let answer = caller.delete(&format!("/api/v1/data?name={name}")).await;
        answer.expect(204);
    }
    has_deleted.store(true, Ordering::Release);
    Done {
        requests: names.len(),
        deleted: names,
        ..Done::default()
    }
}

const READERS: usize = 3;
const WRITERS: usize = 2;
const DELETED: usize = 20;
