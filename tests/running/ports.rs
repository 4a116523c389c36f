//! Ports for development servers.

use keywright_harness::ReservedPort;

/// Reserved ports of two development servers.
pub(crate) struct Ports {
    /// The port of a server.
    pub(crate) first: ReservedPort,
    /// The management port of this server.
    pub(crate) management: ReservedPort,
    /// The port of a second server.
    pub(crate) second: ReservedPort,
    /// The management port of the second server.
    _second_management: ReservedPort,
}

impl Ports {
    /// Reserves free ports.
    pub(crate) fn reserve() -> Self {
        let reserved =
            (0..ATTEMPTS_MAX).find_map(|_| Self::with_management_port(ReservedPort::any()));
        reserved.unwrap_or_else(|| panic!("no free ports were found"))
    }

    fn with_management_port(first: ReservedPort) -> Option<Self> {
        let after = |distance: u16| ReservedPort::of(first.number().checked_add(distance)?);
        Some(Self {
            management: after(MANAGEMENT_PORT_DISTANCE)?,
            second: after(1)?,
            _second_management: after(MANAGEMENT_PORT_DISTANCE + 1)?,
            first,
        })
    }
}

/// The distance between the two ports of a development server.
const MANAGEMENT_PORT_DISTANCE: u16 = 157;

const ATTEMPTS_MAX: usize = 50;
