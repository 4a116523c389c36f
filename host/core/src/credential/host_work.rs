//! Running computations of the host on plugin threads, so that they don't delay other requests.

use std::sync::{Arc, Mutex, PoisonError};

use crate::ports::{Generator, PluginFailure, PluginFault};

/// Runs a computation on one of the threads for short calls and returns its result.
///
/// # Errors
/// If the queue is full, or the computation panicked.
pub(super) async fn computed<T: Send + 'static>(
    generator: &dyn Generator,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PluginFailure> {
    let sender = Arc::new(Mutex::new(None));
    let result = Arc::clone(&sender);
    let work = Box::new(move || {
        let computed = work();
        *sender.lock().unwrap_or_else(PoisonError::into_inner) = Some(computed);
    });
    generator.run_for_host(work).await?;
    let computed = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    computed.ok_or_else(|| PluginFailure::Faulted {
        plugin: generator.identity().name.clone(),
        fault: PluginFault::Trapped,
    })
}
