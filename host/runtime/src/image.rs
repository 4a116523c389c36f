//! The image of a component's first memory, which each of its instances begins as a copy of.

use std::{io, thread, time::Duration};

use wasmtime::component::Component;

/// How often it is tried to make an image while the system says that it is busy.
const ATTEMPTS_MAX: u32 = 40;
/// How long it is waited before it is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes the image now rather than in the first call, whose deadline and whose faults are the guest's own.
///
/// The engine keeps it in a file in memory that it closes to writing (`F_SEAL_WRITE`). Linux refuses that as long as anything
/// else, such as its own reclaiming of memory, holds a page of the file, and waits for no more than some 150 ms. So it is tried
/// again.
///
/// # Errors
/// When the system has no room for it, or stays busy.
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

    /// The outcome of attempts that end so, one after the other, and how many were made.
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
    fn a_busy_system_is_asked_again() {
        let busy = Some(io::ErrorKind::ResourceBusy);
        assert_eq!(tried([busy, busy, None]), (None, 3));
    }

    #[test]
    fn a_system_that_stays_busy_is_asked_a_limited_number_of_times() {
        let busy = Some(io::ErrorKind::ResourceBusy);
        assert_eq!(tried(std::iter::repeat(busy)), (busy, ATTEMPTS_MAX));
    }

    #[test]
    fn any_other_failure_is_final() {
        let none_left = Some(io::ErrorKind::OutOfMemory);
        assert_eq!(tried([none_left, None]), (none_left, 1));
    }
}
