//! The source address of a request.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;

/// Returns the source address of a request: the peer, or the address that a trusted proxy forwards.
///
/// Each proxy appends its peer to the header, so it is read from the end, as long as the addresses are trusted proxies. Values
/// from the caller itself come before that, and are never trusted.
pub(super) fn source(peer: SocketAddr, headers: &HeaderMap, trusted_proxies: &[IpAddr]) -> IpAddr {
    let mut source = peer.ip().to_canonical();
    let values: Vec<&str> = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .map(|value| value.to_str().unwrap_or_default())
        .collect();
    let mut claims = values.iter().rev().flat_map(|value| value.rsplit(','));
    while trusted_proxies.contains(&source) {
        let Some(claimed) = claims.next().and_then(address) else {
            break;
        };
        source = claimed;
    }
    source
}

/// Parses an address, which some proxies write with a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let ip = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    ip.ok().map(|ip| ip.to_canonical())
}

const FORWARDED_FOR: &str = "x-forwarded-for";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_entries_of_trusted_proxies_are_used() {
        for (peer, headers, expected) in [
            ("10.0.0.1", &[][..], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4"], "1.2.3.4"),
            ("10.0.0.9", &["1.2.3.4"], "10.0.0.9"),
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.2"], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6", "1.2.3.4 ,10.0.0.2"], "1.2.3.4"),
            ("10.0.0.1", &["10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["1.2.3.4:5678"], "1.2.3.4"),
            ("10.0.0.1", &["[2001:db8::1]:5678"], "2001:db8::1"),
            ("10.0.0.1", &["2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", &["1.2.3.4, nonsense"], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4, "], "10.0.0.1"),
            ("::ffff:10.0.0.1", &["1.2.3.4"], "1.2.3.4"),
            ("::ffff:9.9.9.9", &["1.2.3.4"], "9.9.9.9"),
        ] {
            let trusted = ["10.0.0.1", "10.0.0.2"].map(|ip| ip.parse().unwrap());
            let mut map = HeaderMap::new();
            for header in headers {
                map.append(FORWARDED_FOR, header.parse().unwrap());
            }
            let peer = SocketAddr::new(peer.parse().unwrap(), 1);
            assert_eq!(
                source(peer, &map, &trusted).to_string(),
                expected,
                "{peer} {headers:?}"
            );
        }
    }
}
