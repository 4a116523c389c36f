//! Processes started by a test: signals, exit, and memory.

use std::{
    fs,
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// Sends a process a signal, such as `INT`.
pub fn signal(process_id: u32, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &process_id.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Waits until a process exits.
#[track_caller]
pub fn ended(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it has not ended");
        }
        thread::sleep(POLL);
    }
}

/// Waits until a process exits, asserts success, and returns the peak memory observed, in KiB; a peak just before the
/// exit may be missed.
#[track_caller]
pub(crate) fn memory_at_most(mut child: Child) -> u64 {
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(kibibytes.unwrap_or_default());
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return peak;
        }
        thread::sleep(POLL);
    }
}

/// The interval between checks of a process.
const POLL: Duration = Duration::from_millis(2);

/// The timeout for the exit of a process.
const PATIENCE: Duration = Duration::from_mins(10);
