//! Ports for servers.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A loopback port reserved for one server while this exists.
///
/// A merely free port could be assigned to another test before the server binds it, and that test's server, which has the
/// same keys, would respond instead. So this socket is bound, but never listens. Linux does not assign such a port to
/// others, but permits binding it explicitly if both sockets set `SO_REUSEADDR`. Servers set it so that they can be
/// restarted.
pub struct ReservedPort {
    number: u16,
    _bound: TcpSocket,
}

impl ReservedPort {
    /// Reserves any free port.
    pub fn any() -> Self {
        Self::reserve(0).unwrap()
    }

    /// Reserves this port if it is free.
    pub fn of(number: u16) -> Option<Self> {
        // An already reserved port could be bound again, but not listened on twice: bind it first without
        // `SO_REUSEADDR`.
        let stranger = TcpSocket::new_v4().unwrap();
        stranger.bind(at(number)).ok()?;
        drop(stranger);
        Self::reserve(number)
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    fn reserve(number: u16) -> Option<Self> {
        let bound = TcpSocket::new_v4().unwrap();
        bound.set_reuseaddr(true).unwrap();
        bound.bind(at(number)).ok()?;
        let number = bound.local_addr().unwrap().port();
        Some(Self {
            number,
            _bound: bound,
        })
    }
}

fn at(number: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, number).into()
}
