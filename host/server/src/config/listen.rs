//! Addresses to listen on.

use std::{
    borrow::Cow,
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    str::FromStr,
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// An IP address or a host name, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ListenAddress {
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Ip(IpAddr),
    Name(String),
}

/// A text is not an address to listen on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be an IP address or a host name, and a port, such as 127.0.0.1:8844, [::1]:8844 or localhost:8844"
)]
pub(crate) struct ListenAddressError;

impl ListenAddress {
    pub(crate) fn new(ip: IpAddr, port: u16) -> Self {
        let host = Host::Ip(ip);
        Self { host, port }
    }

    /// The host as a certificate names it.
    pub(crate) fn host(&self) -> String {
        match &self.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.clone(),
        }
    }

    /// The IP address; `None` for a host name.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        match &self.host {
            Host::Ip(ip) => Some(*ip),
            Host::Name(_) => None,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns all addresses, each once, in the order of the system's resolver. There is at least one.
    ///
    /// # Errors
    /// If the host name can't be resolved.
    pub(crate) fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let name = match &self.host {
            Host::Ip(ip) => return Ok(vec![SocketAddr::new(*ip, self.port)]),
            Host::Name(name) => name,
        };
        let mut addresses = Vec::new();
        for address in (name.as_str(), self.port).to_socket_addrs()? {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(io::Error::other("the host name has no address"));
        }
        Ok(addresses)
    }
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self::new(address.ip(), address.port()));
        }
        let (name, port) = text.rsplit_once(':').ok_or(ListenAddressError)?;
        let is_of_name =
            |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
        // The resolver would interpret a name of digits and dots as an abbreviated IPv4 address.
        let is_name = name.contains(|character: char| character.is_ascii_alphabetic());
        if !is_name || !name.chars().all(is_of_name) {
            return Err(ListenAddressError);
        }
        Ok(Self {
            host: Host::Name(name.to_owned()),
            port: port.parse().map_err(|_| ListenAddressError)?,
        })
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = ListenAddressError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(formatter),
            Host::Name(name) => write!(formatter, "{name}:{}", self.port),
        }
    }
}

impl JsonSchema for ListenAddress {
    fn schema_name() -> Cow<'static, str> {
        "ListenAddress".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ip_address_or_a_host_name_with_a_port_is_accepted() {
        for text in [
            "127.0.0.1:8844",
            "[::1]:0",
            "localhost:65535",
            "a-b.example:1",
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "localhost",
            ":8844",
            "8844",
            "127.0.0.1",
            "::1:8844x",
            "127.1:8844",
            "localhost:65536",
            "localhost:",
            "local host:1",
            "https://localhost:1",
            "*:8844",
        ] {
            assert_eq!(text.parse::<ListenAddress>(), Err(ListenAddressError));
        }
    }
}
