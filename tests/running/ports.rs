//! Ports for development servers.

use keywright_harness::ReservedPort;

/// The ports of two development servers, which nobody else has meanwhile.
pub(crate) struct Ports {
    /// That of a server.
    pub(crate) first: ReservedPort,
    /// The one that a development server at the first has for its measurements.
    pub(crate) management: ReservedPort,
    /// That of a second server.
    pub(crate) second: ReservedPort,
    /// The one for the measurements of a development server at the second.
    _second_management: ReservedPort,
}

impl Ports {
    /// Any that are free.
    pub(crate) fn reserve() -> Self {
        let reserved = (0..ATTEMPTS_MAX).find_map(|_| Self::beside(ReservedPort::any()));
        reserved.unwrap_or_else(|| panic!("no free ports were found"))
    }

    fn beside(first: ReservedPort) -> Option<Self> {
        let after = |distance: u16| ReservedPort::of(first.number().checked_add(distance)?);
        Some(Self {
            management: after(MANAGEMENT_PORT_DISTANCE)?,
            second: after(1)?,
            _second_management: after(MANAGEMENT_PORT_DISTANCE + 1)?,
            first,
        })
    }
}

/// How far the port of measurements is from that of a development server.
const MANAGEMENT_PORT_DISTANCE: u16 = 157;

const ATTEMPTS_MAX: usize = 50;
