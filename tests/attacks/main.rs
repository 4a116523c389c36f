//! Attacks on a running server: one file or folder per class of hostile input. Each test sends all inputs of its class, and then
//! asserts that the server is alive, serves other callers, and leaks nothing.

mod certificates;
mod files;
mod http;
mod json;
mod memory;
mod mutation;
mod plugins;
mod rotation;
mod searches;
mod upgrade;

use std::fs;

use keywright_harness::{Response, Server};
use reqwest::Method;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

/// Asserts that the server's process is running.
#[track_caller]
pub(crate) fn assert_runs(server: &Server, attack: &str) {
    let status = format!("/proc/{}/status", server.process_id());
    let status = fs::read_to_string(status).unwrap_or_default();
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    let runs = state.is_some_and(|state| !state.trim_start().starts_with(['Z', 'X']));
    assert!(
        runs,
        "the server has ended after {attack}:\n{}",
        log_end(server)
    );
}

/// Asserts that the server's process is running and serving, and that nothing has panicked.
pub(crate) async fn assert_alive(server: &Server, attack: &str) {
    assert_runs(server, attack);
    let health = Response::try_to(server.request(Method::GET, "/health")).await;
    let health = health.unwrap_or_else(|cause| panic!("no health after {attack}: {cause}"));
    let is_up = health.status == 200 && health.body.contains("UP");
    assert!(is_up, "after {attack}: {health:?}");
    let log = server.log();
    assert!(!log.contains("panicked"), "after {attack}:\n{log}");
}

/// Asserts that the status is not a server error: no 5xx, except 503 with a `Retry-After`.
#[track_caller]
pub(crate) fn assert_no_fault(response: &Response, attack: &str) {
    let is_busy = response.status == 503 && response.header("retry-after").is_some();
    assert!(
        response.status < 500 || is_busy,
        "{attack}: {} {}",
        response.status,
        response.body
    );
}

fn log_end(server: &Server) -> String {
    let log = server.log();
    let lines: Vec<_> = log.lines().rev().take(20).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Sets the server's file size limit, to simulate a full disk, and returns the previous one.
pub(crate) fn limit_file_size(server: &Server, bytes_max: Option<u64>) -> Option<u64> {
    let process = i32::try_from(server.process_id()).unwrap();
    let limit = Rlimit {
        current: bytes_max,
        maximum: getrlimit(Resource::Fsize).maximum,
    };
    let before = prlimit(Pid::from_raw(process), Resource::Fsize, limit);
    before.unwrap().current
}
