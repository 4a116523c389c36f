//! Subject alternative names.

use std::net::IpAddr;

use der::{Decode, oid::ObjectIdentifier};
use email_address::{EmailAddress, Options};
use fluent_uri::Uri;
use keywright_plugin_support::Violation;
use rcgen::SanType;
use serde::{Deserialize, Serialize};
use x509_cert::ext::{Extension, pkix::name::GeneralName};

use crate::tbs;

/// A subject alternative name (RFC 5280, section 4.2.1.6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum AlternativeName {
    /// A DNS name as requested, optionally with a leading `*.` or `.`.
    Dns(String),
    /// An e-mail address, as requested.
    Email(String),
    /// An IPv4 or IPv6 address.
    Ip(IpAddr),
    /// A URI, as requested.
    Uri(String),
}

impl AlternativeName {
    /// The identifier of the extension.
    pub const EXTENSION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");

    /// Parses one item of the parameter.
    ///
    /// A name with `://` must be a URI. Any other name with `@` must be an e-mail address.
    pub fn parse(name: &str) -> Result<Self, Violation> {
        if let Ok(address) = name.parse() {
            return Ok(Self::Ip(address));
        }
        let form = if name.contains("://") {
            &URI
        } else if name.contains('@') {
            &EMAIL
        } else {
            &DNS
        };
        if name.chars().count() > form.characters_max {
            return Err(Violation::of(
                PARAMETER,
                format!(
                    "must have at most {} characters in each {}",
                    form.characters_max, form.noun
                ),
            ));
        }
        if (form.is_valid)(name) {
            return Ok((form.name)(name.to_owned()));
        }
        Err(Violation::of(
            PARAMETER,
            format!(
                "contains `{name}`, which is not a DNS name, an IP address, an e-mail address or a URI with a host"
            ),
        ))
    }

    /// Converts to rcgen's type.
    ///
    /// # Errors
    ///
    /// [`rcgen::Error`] if a name is not ASCII, which [`Self::parse`] rejects.
    pub fn general_name(&self) -> Result<SanType, rcgen::Error> {
        Ok(match self {
            Self::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
            Self::Email(address) => SanType::Rfc822Name(address.as_str().try_into()?),
            Self::Ip(address) => SanType::IpAddress(*address),
            Self::Uri(uri) => SanType::URI(uri.as_str().try_into()?),
        })
    }

    /// Returns the extension's names that the parameter can express, and whether the extension has no others.
    pub fn of_extension(extension: &Extension) -> der::Result<(Vec<Self>, bool)> {
        let mut found = Vec::new();
        let mut has_all = true;
        for name in tbs::fields(extension.extn_value.as_bytes())? {
            // Names of other types need not be well-formed.
            match GeneralName::from_der(name?).map(|name| Self::of_general_name(&name)) {
                Ok(Some(name)) => found.push(name),
                _ => has_all = false,
            }
        }
        Ok((found, has_all))
    }

    /// Converts a name from a certificate, if a parameter can express it: parsing its text must result in the same name. The
    /// address `"a://b"@example.com`, for example, would be parsed as a URI.
    fn of_general_name(name: &GeneralName) -> Option<Self> {
        let found = match name {
            GeneralName::DnsName(name) => Self::Dns(name.as_str().to_owned()),
            GeneralName::Rfc822Name(address) => Self::Email(address.as_str().to_owned()),
            GeneralName::UniformResourceIdentifier(uri) => Self::Uri(uri.as_str().to_owned()),
            GeneralName::IpAddress(octets) => Self::Ip(ip_address(octets.as_bytes())?),
            _ => return None,
        };
        let read = Self::parse(&String::from(found.clone())).ok()?;
        (read == found).then_some(found)
    }
}

impl From<AlternativeName> for String {
    fn from(name: AlternativeName) -> Self {
        match name {
            AlternativeName::Dns(text)
            | AlternativeName::Email(text)
            | AlternativeName::Uri(text) => text,
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

fn ip_address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from))
        .ok()
}

/// A textual form of a name.
struct Form {
    noun: &'static str,
    characters_max: usize,
    is_valid: fn(&str) -> bool,
    name: fn(String) -> AlternativeName,
}

const DNS: Form = Form {
    noun: "DNS name",
    characters_max: 253,
    is_valid: is_dns_name,
    name: AlternativeName::Dns,
};

/// RFC 5321, section 4.5.3.1.3, limits the length. Its limit includes angle brackets, which are not counted here.
const EMAIL: Form = Form {
    noun: "e-mail address",
    characters_max: 254,
    is_valid: is_email_address,
    name: AlternativeName::Email,
};

/// The maximum length of SPIFFE IDs applies to all URIs.
const URI: Form = Form {
    noun: "URI",
    characters_max: 2048,
    is_valid: is_uri,
    name: AlternativeName::Uri,
};

/// Checks for a DNS name of letters, digits, hyphens and underscores, optionally with a leading `*.` or `.`.
fn is_dns_name(name: &str) -> bool {
    let name = name
        .strip_prefix('*')
        .filter(|rest| rest.starts_with('.'))
        .unwrap_or(name);
    is_host_name(name.strip_prefix('.').unwrap_or(name))
}

/// Checks for a DNS name without a prefix.
///
/// The last label must not be a decimal or hexadecimal number, because some programs would read the name as an IPv4 address.
fn is_host_name(name: &str) -> bool {
    name.len() <= DNS.characters_max
        && name.split('.').all(is_label)
        && !name.rsplit('.').next().is_some_and(is_number)
}

fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x").or(label.strip_prefix("0X")) {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_CHARACTERS_MAX).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Checks for an ASCII e-mail address without a display name or an address literal (RFC 5321, section 4.1.2).
fn is_email_address(address: &str) -> bool {
    let options = Options::default()
        .without_display_text()
        .without_domain_literal();
    address.is_ascii()
        && !address.contains(|character: char| character.is_ascii_control())
        && EmailAddress::parse_with_options(address, options)
            .is_ok_and(|address| is_host_name(address.domain()))
}

/// Checks for a URI with a scheme, and a host that is an IP address or a DNS name (RFC 3986, as RFC 5280 requires).
fn is_uri(uri: &str) -> bool {
    Uri::parse(uri).is_ok_and(|uri| {
        uri.authority().is_some_and(|authority| {
            let host = authority.host();
            let literal = host
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            literal.unwrap_or(host).parse::<IpAddr>().is_ok() || is_host_name(host)
        })
    })
}

const PARAMETER: &str = "alternative_names";
const LABEL_CHARACTERS_MAX: usize = 63;
