//! What holds across requests: simultaneous writers, restarts, and the end of a server.

mod concurrency;
mod restart;
mod rotation;
mod shutdown;
