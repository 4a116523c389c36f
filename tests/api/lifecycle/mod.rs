//! Behavior across requests: simultaneous writers, restarts, and shutdown.

mod concurrency;
mod restart;
mod rotation;
mod shutdown;
