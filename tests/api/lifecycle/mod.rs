//! What holds across requests: simultaneous writers, restarts, and the end of a server.

mod concurrency;
mod live_tls;
mod restart;
mod rotation;
mod shutdown;
