//! An audit sink in memory that can fail or block.

use std::{
    io::{self, ErrorKind},
    sync::{Arc, Condvar, Mutex},
};

use keywright_api::audit::{AppendFailed, AuditSink};
use serde_json::Value;

/// An audit sink whose clones share their state.
#[derive(Clone, Default)]
pub(crate) struct KeptSink {
    kept: Arc<Kept>,
    is_prompt: bool,
}

#[derive(Default)]
struct Kept {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<u8>,
    appends: usize,
    begun: usize,
    is_held: bool,
    /// The number of bytes that can still be written; `None` if unlimited.
    room: Option<usize>,
}

impl KeptSink {
    /// A sink that requests write to themselves.
    pub(crate) fn prompt() -> Self {
        Self {
            is_prompt: true,
            ..Self::default()
        }
    }

    /// The events that were written, oldest first.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.kept.state.lock().unwrap().lines.clone();
        let lines = String::from_utf8(lines).unwrap();
        assert!(lines.is_empty() || lines.ends_with('\n'));
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The number of writes.
    pub(crate) fn appends(&self) -> usize {
        self.kept.state.lock().unwrap().appends
    }

    /// The number of started writes.
    pub(crate) fn begun(&self) -> usize {
        self.kept.state.lock().unwrap().begun
    }

    /// Makes writes fail after this many bytes.
    pub(crate) fn break_after(&self, bytes: usize) {
        self.kept.state.lock().unwrap().room = Some(bytes);
    }

    /// Makes all writes succeed again.
    pub(crate) fn repair(&self) {
        self.kept.state.lock().unwrap().room = None;
    }

    /// Blocks writers until [`KeptSink::release`].
    pub(crate) fn hold(&self) {
        self.kept.state.lock().unwrap().is_held = true;
    }

    /// Releases blocked writers.
    pub(crate) fn release(&self) {
        self.kept.state.lock().unwrap().is_held = false;
        self.kept.changed.notify_all();
    }
}

impl AuditSink for KeptSink {
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendFailed> {
        let mut state = self.kept.state.lock().unwrap();
        state.begun += 1;
        let mut state = self
            .kept
            .changed
            .wait_while(state, |state| state.is_held)
            .unwrap();
        let room = state.room.unwrap_or(lines.len()).min(lines.len());
        let whole = lines[..room]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        state.lines.extend_from_slice(&lines[..whole]);
        if state.room.is_some() {
            return Err(AppendFailed {
                bytes_written: whole,
                cause: ErrorKind::StorageFull.into(),
            });
        }
        state.appends += usize::from(!lines.is_empty());
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.repair();
        Ok(())
    }

    fn is_prompt(&self) -> bool {
        self.is_prompt
    }
}
