//! The types of settings: addresses to listen on, paths, and the locations of secrets.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    path::Path,
    str::FromStr,
};

pub(crate) use keywright_runtime::Number;

use keywright_core::{
    Secret,
    permission::{ACTOR_KINDS, PermissionPath},
};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::{findings::Findings, source::read_text};
use crate::started::{StartupContext, StartupError};

/// An IP address or a host name, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct ListenAddress {
    host: String,
    port: u16,
}

/// The error for a text that is not an address to listen on.
const MALFORMED_ADDRESS: &str = "must be an IP address or a host name, and a port, such as 127.0.0.1:8844, [::1]:8844 or localhost:8844";

impl ListenAddress {
    pub(crate) fn new(ip: IpAddr, port: u16) -> Self {
        let host = ip.to_string();
        Self { host, port }
    }

    /// Returns the host as a certificate names it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the IP address; `None` for a host name.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns all addresses, each once, in the order of the system's resolver. There is at least one.
    pub(crate) fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let mut addresses = Vec::new();
        for address in (self.host(), self.port).to_socket_addrs()? {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(io::Error::other("the host name has no address"));
        }
        Ok(addresses)
    }

    /// Returns the addresses of a setting. If the host name can't be resolved, reports the error and returns no
    /// addresses.
    pub(super) fn resolve_or_report(
        &self,
        setting: &str,
        findings: &mut Findings,
    ) -> Vec<SocketAddr> {
        let resolved = self
            .resolve()
            .while_doing(format!("resolving {}", self.host()));
        findings.ok_or_report(setting, resolved).unwrap_or_default()
    }
}

impl FromStr for ListenAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The scope of an address such as `[fe80::1%2]:8844` would be lost.
        if let Ok(address) = text.parse::<SocketAddr>()
            && !text.contains('%')
        {
            return Ok(Self::new(address.ip(), address.port()));
        }
        let (name, port) = text.rsplit_once(':').ok_or(MALFORMED_ADDRESS)?;
        let is_name_character =
            |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
        // The resolver would interpret a name of digits and dots as an abbreviated IPv4 address.
        let has_letter = name.contains(|character: char| character.is_ascii_alphabetic());
        if !has_letter || !name.chars().all(is_name_character) {
            return Err(MALFORMED_ADDRESS);
        }
        Ok(Self {
            host: name.to_owned(),
            port: port.parse().map_err(|_| MALFORMED_ADDRESS)?,
        })
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip() {
            Some(ip) => SocketAddr::new(ip, self.port).fmt(formatter),
            None => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

/// Parses the path of a permission or a policy. Refuses a lone `*`, which the API accepts as `/*`: in a file, it is probably a mistake.
pub(crate) fn configured_path(text: &str) -> Result<PermissionPath, String> {
    if text == "*" {
        return Err("must not be only an asterisk; for all credentials, use \"/*\"".to_owned());
    }
    PermissionPath::parse(text).map_err(|malformed| malformed.to_string())
}

/// Returns the forms of actors that callers can have, for messages.
pub(crate) fn actor_forms() -> String {
    ACTOR_KINDS.map(|kind| format!("{kind}ID")).join(", ")
}

/// The location of a secret.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SecretSource<'a> {
    /// An environment variable.
    Environment(&'a str),
    /// A file. A trailing line break is not part of the secret.
    File(&'a Path),
}

impl<'a> SecretSource<'a> {
    /// Returns the location of an optional secret by the settings `name_file` and `name_environment`.
    pub(super) fn of(
        name: &str,
        file: Option<&'a Path>,
        environment: Option<&'a str>,
    ) -> Result<Option<Self>, StartupError> {
        match (file, environment) {
            (Some(_), Some(_)) => Err(StartupError::new(format!(
                "only one of {name}_file and {name}_environment may be set"
            ))),
            (Some(file), None) => Ok(Some(Self::File(file))),
            (None, environment) => Ok(environment.map(Self::Environment)),
        }
    }

    /// Returns the setting that locates the secret.
    pub(super) fn setting(self, name: &str) -> String {
        match self {
            Self::Environment(_) => format!("{name}_environment"),
            Self::File(_) => format!("{name}_file"),
        }
    }

    /// Reads an optional secret. An error names the setting.
    pub(super) fn read_optional(
        source: Option<Self>,
        name: &str,
    ) -> Result<Option<Secret>, StartupError> {
        let read = |source: Self| source.read().while_doing(source.setting(name));
        source.map(read).transpose()
    }

    pub(crate) fn read(self) -> Result<Secret, StartupError> {
        self.read_while("reading the secret file")
    }

    /// Reads the secret. An error names the operation.
    pub(crate) fn read_while(self, doing: &str) -> Result<Secret, StartupError> {
        match self {
            Self::Environment(name) => std::env::var(name).map(Secret::new).map_err(|_| {
                StartupError::new(if is_variable_name(name) {
                    format!("the environment variable {name} is not set")
                } else {
                    "the environment variable is not set; the setting must contain its name, not the secret".to_owned()
                })
            }),
            Self::File(path) => {
                let text = read_text(path).map(Zeroizing::new).on_file(doing, path)?;
                Ok(Secret::new(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
        }
    }
}

/// Returns whether a text is a conventional name of an environment variable, which an error may show. Other texts may be secrets.
fn is_variable_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    text.bytes().all(is_allowed)
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
            "[fe80::1%2]:8844",
        ] {
            assert_eq!(text.parse::<ListenAddress>(), Err(MALFORMED_ADDRESS));
        }
    }
}
