//! Client certificates, failing handshakes, and the reload of TLS files.

mod audit;
mod authorities;
mod caller;
mod expect;
mod handshake;
mod identity;
mod issued;
mod measured;
mod openssl;
mod reload;
mod without_authorities;
mod without_tokens;

pub(crate) use expect::server_knowing_with;
pub(crate) use issued::{Authority, Contents};
