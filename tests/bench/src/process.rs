//! Process information from the system (Linux).

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    time::{Duration, Instant},
};

use crate::statistics::{Outcome, number};

/// Processor time and voluntary context switches.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) processor: Duration,
    pub(crate) switches: u64,
}

/// The usage of each thread of a process since the thread started.
pub(crate) struct ThreadUsages(BTreeMap<OsString, Usage>);

impl ThreadUsages {
    /// Reads the usage of all live threads, with a resolution of a nanosecond; `/proc/PID/stat` only counts clock ticks.
    pub(crate) fn of(process_id: u32) -> Outcome<Self> {
        let mut threads = BTreeMap::new();
        for thread in fs::read_dir(format!("/proc/{process_id}/task"))? {
            let thread = thread?;
            let (Ok(time), Ok(status)) = (
                fs::read_to_string(thread.path().join("schedstat")),
                fs::read_to_string(thread.path().join("status")),
            ) else {
                // The thread has ended.
                continue;
            };
            let usage = Usage {
                processor: Duration::from_nanos(first(&time)?),
                switches: first(field(&status, "voluntary_ctxt_switches")?)?,
            };
            threads.insert(thread.file_name(), usage);
        }
        Ok(Self(threads))
    }

    /// Returns the usage since an earlier reading. Threads that have ended in between do not count.
    pub(crate) fn since(&self, earlier: &Self) -> Usage {
        let mut sum = Usage::default();
        for (thread, usage) in &self.0 {
            let before = earlier.0.get(thread).copied().unwrap_or_default();
            sum.processor += usage.processor.saturating_sub(before.processor);
            sum.switches += usage.switches.saturating_sub(before.switches);
        }
        sum
    }
}

/// Returns one of the sizes in a process's status, such as `VmRSS`, in MiB.
pub(crate) fn size_mib(process_id: u32, name: &str) -> Outcome<f64> {
    let status = fs::read_to_string(format!("/proc/{process_id}/status"))?;
    Ok(number(first(field(&status, name)?)?) / 1_024.0)
}

pub(crate) fn wait_until_idle(process_id: u32) -> Outcome<()> {
    loop {
        let (before, start) = (ThreadUsages::of(process_id)?, Instant::now());
        std::thread::sleep(IDLE_INTERVAL);
        let used = ThreadUsages::of(process_id)?.since(&before);
        if used.processor * 20 < start.elapsed() {
            return Ok(());
        }
    }
}

/// Returns a field of the status of a process or thread.
fn field<'s>(status: &'s str, name: &str) -> Outcome<&'s str> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.ok_or_else(|| format!("the status of a process has no {name}").into())
}

/// Parses the number at the beginning of a text.
fn first<T: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str) -> Outcome<T> {
    Ok(text.split_whitespace().next().unwrap_or_default().parse()?)
}

const IDLE_INTERVAL: Duration = Duration::from_millis(500);
