//! Ports for servers.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port of the loopback address on which one server may listen, and which nobody else gets while this is there.
///
/// A port that was free a moment ago may have been given to another test before the server binds it, and that other test's
/// server, which has the same keys, would answer in its place. So this is bound, and never listens. Linux gives such a port
/// to nobody who asks for any free one, and lets bind it who asks for this one, if both set `SO_REUSEADDR`: servers do, so
/// that they can be started again.
pub struct ReservedPort {
    number: u16,
    _bound: TcpSocket,
}

impl ReservedPort {
    /// Any port that is free.
    pub fn any() -> Self {
        Self::reserve(0).unwrap()
    }

    /// This port, if it is free.
    pub fn of(number: u16) -> Option<Self> {
        // One that is reserved already could be bound again, but not be listened on by both: ask for it as a stranger.
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
