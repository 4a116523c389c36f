//! The alternative names of a certificate's subject.

use std::net::IpAddr;

use keywright_plugin_support::Violation;
use rcgen::SanType;
use serde::{Deserialize, Serialize};
use x509_cert::ext::pkix::name::GeneralName;

/// One alternative name: an IP address, or a DNS name with perhaps a wildcard or a dot before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum AlternativeName {
    /// A DNS name, as it was asked for.
    Dns(String),
    /// An IPv4 or IPv6 address.
    Ip(IpAddr),
}

impl AlternativeName {
    /// Reads one item of the parameter.
    ///
    /// # Errors
    ///
    /// The rule that it breaks.
    pub fn parse(name: &str) -> Result<Self, Violation> {
        if name.chars().count() > NAME_CHARACTERS_MAX {
            return Err(Violation::of(
                PARAMETER,
                format!("each must be of at most {NAME_CHARACTERS_MAX} characters"),
            ));
        }
        if let Ok(address) = name.parse() {
            return Ok(Self::Ip(address));
        }
        if is_dns_name(name) {
            return Ok(Self::Dns(name.to_owned()));
        }
        Err(Violation::of(
            PARAMETER,
            format!("each must be a DNS name or an IP address, which `{name}` is not"),
        ))
    }

    /// The name as rcgen knows it.
    ///
    /// # Errors
    ///
    /// [`rcgen::Error`], when a DNS name is not ASCII; such a name does not get here.
    pub fn general_name(&self) -> Result<SanType, rcgen::Error> {
        Ok(match self {
            Self::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
            Self::Ip(address) => SanType::IpAddress(*address),
        })
    }

    /// The name that stands in a certificate, if it is one that may be asked for.
    #[must_use]
    pub fn of_general_name(name: &GeneralName) -> Option<Self> {
        match name {
            GeneralName::DnsName(name) if is_dns_name(name.as_str()) => {
                Some(Self::Dns(name.as_str().to_owned()))
            }
            GeneralName::IpAddress(octets) => {
                let octets = octets.as_bytes();
                <[u8; 4]>::try_from(octets)
                    .map(IpAddr::from)
                    .or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from))
                    .ok()
                    .map(Self::Ip)
            }
            _ => None,
        }
    }
}

impl From<AlternativeName> for String {
    fn from(name: AlternativeName) -> Self {
        match name {
            AlternativeName::Dns(name) => name,
            AlternativeName::Ip(address) => address.to_string(),
        }
    }
}

impl TryFrom<String> for AlternativeName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::parse(&name).map_err(|violation| violation.rule)
    }
}

/// Whether it is a DNS name of letters, digits, hyphens and underscores, with `*.` or `.` before it or not.
///
/// The last label must not be a number: then it would be read as an IPv4 address somewhere.
fn is_dns_name(name: &str) -> bool {
    let name = name
        .strip_prefix('*')
        .filter(|rest| rest.starts_with('.'))
        .unwrap_or(name);
    let name = name.strip_prefix('.').unwrap_or(name);
    name.len() <= NAME_CHARACTERS_MAX
        && name.split('.').all(is_label)
        && !name
            .rsplit('.')
            .next()
            .is_some_and(|label| label.bytes().all(|b| b.is_ascii_digit()))
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_CHARACTERS_MAX).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

const PARAMETER: &str = "alternative_names";
const NAME_CHARACTERS_MAX: usize = 253;
const LABEL_CHARACTERS_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_told_apart() {
        for name in [
            "10.0.0.1",
            "255.255.255.255",
            "::1",
            "2001:db8::8a2e:370:7334",
        ] {
            assert_eq!(
                AlternativeName::parse(name),
                Ok(AlternativeName::Ip(name.parse().unwrap()))
            );
        }
        let long = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        assert_eq!(long.len(), 253);
        for name in [
            "example.com",
            "EXAMPLE.com",
            "localhost",
            "a_b.example",
            "_dmarc.example",
            "1.2.3.com",
            "x--y.z",
            "*.example.com",
            ".example.com",
            "1e5",
            &long,
        ] {
            assert_eq!(
                AlternativeName::parse(name),
                Ok(AlternativeName::Dns(name.to_owned()))
            );
        }
    }

    #[test]
    fn an_address_has_one_canonical_form() {
        let name = AlternativeName::parse("2001:DB8:0:0:0:0:0:1").unwrap();
        assert_eq!(String::from(name), "2001:db8::1");
    }

    #[test]
    fn what_is_neither_is_refused() {
        let long = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(62));
        for name in [
            "",
            ".",
            "*",
            "*.",
            "a..b",
            "a.",
            "a b",
            " a",
            "x@example.com",
            "https://example.com",
            "example.com/path",
            "1.2.3.999",
            "1.2.3",
            "256.0.0.1",
            "a.*.b",
            "*a.b",
            "**.b",
            "*..b",
            "-a.b",
            "a-.b",
            "ä.example",
            "a\u{0}b",
            "10.0.0.1/8",
            "[::1]",
            "fe80::1%eth0",
            &long,
            &"a".repeat(64),
        ] {
            let violation = AlternativeName::parse(name).unwrap_err();
            assert_eq!(
                violation.member.as_deref(),
                Some("alternative_names"),
                "{name}"
            );
        }
        assert!(
            AlternativeName::parse(&long)
                .unwrap_err()
                .rule
                .contains("253")
        );
    }
}
