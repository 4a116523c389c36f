//! Binds the configured addresses, and later listens on them.
//!
//! A server binds its addresses before any slow start-up step, so that it reports a busy port at once. It listens when
//! it is ready. Until then, the system refuses connections, so clients and load balancers try another server, and a
//! health check that only connects fails.

use std::{
    fmt,
    future::poll_fn,
    io,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
};

use rustix::io::Errno;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::{config::ListenAddress, started::StartupError};

/// The addresses of one setting, bound.
pub(crate) struct BoundAddresses {
    setting: &'static str,
    sockets: Vec<TcpSocket>,
    addresses: Vec<SocketAddr>,
}

/// The addresses of one setting, listened on.
pub(crate) struct Listeners {
    sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    /// Counts the attempts to accept a connection, so that each starts with another listener.
    attempts: AtomicUsize,
}

impl BoundAddresses {
    /// Binds all addresses of a host name that belong to this machine.
    pub(crate) fn bind(
        configured: &ListenAddress,
        setting: &'static str,
    ) -> Result<Self, StartupError> {
        let resolved = configured.resolve();
        let resolved = resolved.map_err(|cause| refused(setting, configured, cause))?;
        Self::bind_all(&resolved, setting)
    }

    fn bind_all(addresses: &[SocketAddr], setting: &'static str) -> Result<Self, StartupError> {
        let mut bound = Self {
            setting,
            sockets: Vec::with_capacity(addresses.len()),
            addresses: Vec::with_capacity(addresses.len()),
        };
        let mut missing = None;
        for mut address in addresses.iter().copied() {
            // If the system chooses the port, it is the same for all addresses.
            if let (0, Some(first)) = (address.port(), bound.addresses.first()) {
                address.set_port(first.port());
            }
            match bind(address).and_then(|socket| Ok((socket.local_addr()?, socket))) {
                Ok((address, socket)) => {
                    bound.sockets.push(socket);
                    bound.addresses.push(address);
                }
                Err(cause) if is_missing(&cause) => missing = Some((address, cause)),
                Err(cause) => return Err(refused(setting, &address, cause)),
            }
        }
        match missing {
            Some((address, cause)) if bound.sockets.is_empty() => {
                Err(refused(setting, &address, cause))
            }
            Some((address, cause)) => {
                tracing::warn!(setting, %address, %cause, "skipped an address of the host name: this machine does not have it");
                Ok(bound)
            }
            None => Ok(bound),
        }
    }

    /// Returns the bound addresses, with the ports that the system chose.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub(crate) fn listen(self) -> Result<Listeners, StartupError> {
        let sockets = self.sockets.into_iter().zip(&self.addresses);
        let listeners = sockets.map(|(socket, address)| {
            let listening = socket.listen(BACKLOG_MAX);
            listening.map_err(|cause| refused(self.setting, address, cause))
        });
        Ok(Listeners {
            sockets: listeners.collect::<Result<_, _>>()?,
            addresses: self.addresses,
            attempts: AtomicUsize::new(0),
        })
    }
}

impl Listeners {
    /// Returns the addresses, with the ports that the system chose. There is at least one.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits for a connection to any of the addresses.
    pub(crate) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let count = self.sockets.len();
        poll_fn(|context| {
            let first = self.attempts.fetch_add(1, Ordering::Relaxed) % count;
            let rotated = self.sockets.iter().cycle().skip(first).take(count);
            for listener in rotated {
                if let Poll::Ready(accepted) = listener.poll_accept(context) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}

fn refused(setting: &str, address: &impl fmt::Display, cause: io::Error) -> StartupError {
    StartupError::while_doing(format!("listening on {address} ({setting})"), cause)
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Permits a restarted server to bind the same address at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Returns whether the machine does not have an address, for example because IPv6 is off.
fn is_missing(cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::AddrNotAvailable
        || cause.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
}

/// Maximum number of connections that wait to be accepted; the kernel may allow fewer. Further clients must retry.
const BACKLOG_MAX: u32 = 4_096;

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    fn bound(addresses: &[&str]) -> Result<BoundAddresses, StartupError> {
        let addresses: Vec<_> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        BoundAddresses::bind_all(&addresses, "server.listen")
    }

    #[tokio::test]
    async fn connections_to_each_address_are_accepted() {
        let listeners = bound(&["127.0.0.1:0", "127.0.0.2:0"]).unwrap();
        let listeners = listeners.listen().unwrap();
        let [first, second] = listeners.addresses() else {
            panic!("{:?}", listeners.addresses());
        };
        assert_eq!(first.port(), second.port());
        for address in [first, second, first, second] {
            let _client = TcpStream::connect(address).await.unwrap();
            let (accepted, _) = listeners.accept().await.unwrap();
            assert_eq!(accepted.local_addr().unwrap(), *address);
        }
    }

    #[tokio::test]
    async fn a_missing_address_is_skipped_unless_it_is_the_only_one() {
        let listeners = bound(&["192.0.2.1:0", "127.0.0.1:0"]).unwrap();
        assert_eq!(listeners.addresses().len(), 1);
        assert!(bound(&["192.0.2.1:0"]).is_err());
    }

    #[tokio::test]
    async fn one_busy_address_of_several_is_an_error() {
        let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let busy = busy.local_addr().unwrap().to_string();
        assert!(bound(&["127.0.0.2:0", &busy]).is_err());
    }
}
