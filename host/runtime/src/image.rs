//! The initial memory image of a component. Each instance starts with a copy of it.

use std::{io, thread, time::Duration};

use wasmtime::component::Component;

/// The maximum number of attempts to create an image while the system is busy.
const ATTEMPTS_MAX: u32 = 40;
/// The pause between attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Creates the image when the plugin is loaded. The first call would otherwise create it, within the guest's deadline, and its
/// failure would count as the guest's fault.
///
/// The engine seals an in-memory file against writes (`F_SEAL_WRITE`). Linux refuses that while anything else, such as its own
/// memory reclaim, holds a page of the file, and waits for about 150 ms at most. Hence the retries.
///
/// # Errors
/// If the system is out of memory, or stays busy.
pub(crate) fn make(component: &Component) -> wasmtime::Result<()> {
    while_busy(PAUSE, || component.initialize_copy_on_write_image())
}

fn while_busy(
    pause: Duration,
    mut attempt: impl FnMut() -> wasmtime::Result<()>,
) -> wasmtime::Result<()> {
    for _ in 1..ATTEMPTS_MAX {
        match attempt() {
            Err(cause) if is_busy(&cause) => thread::sleep(pause),
            outcome => return outcome,
        }
    }
    attempt()
}

fn is_busy(cause: &wasmtime::Error) -> bool {
    cause
        .root_cause()
        .downcast_ref::<io::Error>()
        .is_some_and(|cause| cause.kind() == io::ErrorKind::ResourceBusy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the outcome of consecutive attempts with these results, and the number of attempts.
    fn tried(
        ends: impl IntoIterator<Item = Option<io::ErrorKind>>,
    ) -> (Option<io::ErrorKind>, u32) {
        let (mut ends, mut attempts) = (ends.into_iter(), 0);
        let outcome = while_busy(Duration::ZERO, || {
            attempts += 1;
            match ends.next().flatten() {
                Some(kind) => Err(wasmtime::Error::new(io::Error::from(kind)).context("sealing")),
                None => Ok(()),
            }
        });
        let kind = |cause: wasmtime::Error| {
            let cause = cause
                .root_cause()
                .downcast_ref::<io::Error>()
                .map(io::Error::kind);
            cause.expect("the attempt's own error")
        };
        (outcome.err().map(kind), attempts)
    }

    #[test]
    fn a_busy_system_is_retried() {
        let busy = Some(io::ErrorKind::ResourceBusy);
        assert_eq!(tried([busy, busy, None]), (None, 3));
    }

    #[test]
    fn retries_end_when_the_system_stays_busy() {
        let busy = Some(io::ErrorKind::ResourceBusy);
        assert_eq!(tried(std::iter::repeat(busy)), (busy, ATTEMPTS_MAX));
    }

    #[test]
    fn any_other_failure_is_final() {
        let none_left = Some(io::ErrorKind::OutOfMemory);
        assert_eq!(tried([none_left, None]), (none_left, 1));
    }
}
