//! Registry references: `oci://HOST[:PORT]/REPOSITORY[:TAG][@DIGEST]`, and SHA-256 digests in them and in manifests.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use aws_lc_rs::digest::{SHA256, digest};
use serde::Deserialize;

/// Returns whether the text starts like a reference. It may be malformed.
pub fn is_reference(text: &str) -> bool {
    text.starts_with(SCHEME)
}

/// A reference to a manifest by its digest. It may have a tag, for readers only; the tag is never resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedReference {
    pub(crate) repository: Repository,
    pub(crate) tag: Option<String>,
    pub(crate) digest: Digest,
}

/// The repository and the tag to push a component to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushTarget {
    pub(crate) repository: Repository,
    pub(crate) tag: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    pub(crate) host: RegistryHost,
    pub(crate) name: String,
}

/// The host of a registry, in lower case, with its port unless it is the default one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct RegistryHost(String);

/// A malformed reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum ReferenceError {
    #[error("invalid digest: must be `sha256:` followed by 64 lower-case hexadecimal digits")]
    Digest,
    #[error("a push target must have a tag and no digest: the push computes the digest")]
    DigestGiven,
    #[error(
        "the reference has no digest, and a tag can be moved to another manifest: add @sha256:… with the digest of the manifest, \
         as printed by `keywright plugin push` or by `skopeo inspect --format '{{{{.Digest}}}}' docker://HOST/REPOSITORY:TAG`"
    )]
    DigestMissing,
    #[error("invalid host: must be HOST or HOST:PORT")]
    Host,
    #[error("invalid host: the port must be from 1 to 65535")]
    Port,
    #[error(
        "invalid repository in oci://HOST/REPOSITORY: must be 1 to {REPOSITORY_BYTES_MAX} characters: words of a-z and 0-9 \
         separated by `/`, `.`, `_`, `__` or hyphens"
    )]
    Repository,
    #[error("must start with oci://")]
    Scheme,
    #[error(
        "invalid tag: must be 1 to {TAG_BYTES_MAX} characters of A-Z, a-z, 0-9, `_`, `.` and `-`, not starting with `.` or `-`"
    )]
    Tag,
    #[error("missing tag: add one, as in oci://HOST/REPOSITORY:1.0.0")]
    TagMissing,
}

impl PinnedReference {
    /// Returns the host of the registry.
    pub fn host(&self) -> &RegistryHost {
        &self.repository.host
    }

    /// Returns the digest of the manifest.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

impl PushTarget {
    /// Returns the host of the registry.
    pub fn host(&self) -> &RegistryHost {
        &self.repository.host
    }
}

impl RegistryHost {
    /// Returns whether the host is `localhost` or a loopback address, so that requests do not leave the machine.
    pub fn is_loopback(&self) -> bool {
        let (name, _) = split_port(&self.0).unwrap_or((&self.0, None));
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost"
            || address
                .parse()
                .is_ok_and(|address: IpAddr| address.is_loopback())
    }

    /// Returns the host, followed by the port if there is one.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PinnedReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let (repository, tag, digest) = parts(text)?;
        let digest = digest.ok_or(ReferenceError::DigestMissing)?;
        Ok(Self {
            repository,
            tag,
            digest,
        })
    }
}

impl FromStr for PushTarget {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        match parts(text)? {
            (_, _, Some(_)) => Err(ReferenceError::DigestGiven),
            (_, None, None) => Err(ReferenceError::TagMissing),
            (repository, Some(tag), None) => Ok(Self { repository, tag }),
        }
    }
}

impl FromStr for RegistryHost {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let (name, port) = split_port(text).ok_or_else(|| match text.rsplit_once(':') {
            Some((_, port)) if port.bytes().all(is_digit) => ReferenceError::Port,
            _ => ReferenceError::Host,
        })?;
        let address = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let is_name = match address {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => is_host_name(name),
        };
        if !is_name {
            return Err(ReferenceError::Host);
        }
        if port == Some(0) {
            return Err(ReferenceError::Port);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

impl TryFrom<String> for RegistryHost {
    type Error = ReferenceError;

    fn try_from(text: String) -> Result<Self, ReferenceError> {
        text.parse()
    }
}

impl fmt::Display for PinnedReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.repository)?;
        if let Some(tag) = &self.tag {
            write!(formatter, ":{tag}")?;
        }
        write!(formatter, "@{}", self.digest)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}/{}", self.host, self.name)
    }
}

impl fmt::Display for RegistryHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn parts(text: &str) -> Result<(Repository, Option<String>, Option<Digest>), ReferenceError> {
    let rest = text.strip_prefix(SCHEME).ok_or(ReferenceError::Scheme)?;
    let (host, rest) = rest.split_once('/').ok_or(ReferenceError::Repository)?;
    let host = host.parse()?;
    let (rest, digest) = match rest.split_once('@') {
        Some((rest, digest)) => {
            let digest = digest.parse()?;
            (rest, Some(digest))
        }
        None => (rest, None),
    };
    let (repository, tag) = match rest.split_once(':') {
        Some((_, tag)) if !is_tag(tag) => return Err(ReferenceError::Tag),
        Some((repository, tag)) => (repository, Some(tag.to_owned())),
        None => (rest, None),
    };
    if !is_repository(repository) {
        return Err(ReferenceError::Repository);
    }
    let name = repository.to_owned();
    Ok((Repository { host, name }, tag, digest))
}

/// Splits a host into name and port, or returns `None` if the port is malformed.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|_| is_number)?;
            Some((name, Some(port)))
        }
        _ => Some((text, None)),
    }
}

fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_allowed)
    };
    text.len() <= HOST_BYTES_MAX && text.split('.').all(is_label)
}

/// Checks against the distribution specification: components `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`, separated by slashes.
fn is_repository(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_component = |component: &str| {
        let mut separators =
            component.split(|letter: char| u8::try_from(letter).is_ok_and(is_word));
        let is_separator = |separator: &str| {
            matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        };
        let ends = [component.bytes().next(), component.bytes().next_back()];
        ends.into_iter().all(|end| end.is_some_and(is_word)) && separators.all(is_separator)
    };
    text.len() <= REPOSITORY_BYTES_MAX && text.split('/').all(is_component)
}

/// Checks against the distribution specification: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`.
fn is_tag(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !text.is_empty()
        && text.len() <= TAG_BYTES_MAX
        && !text.starts_with(['.', '-'])
        && text.bytes().all(is_allowed)
}

const SCHEME: &str = "oci://";
/// The longest host name, in bytes (RFC 1035).
const HOST_BYTES_MAX: usize = 253;
const REPOSITORY_BYTES_MAX: usize = 255;
const TAG_BYTES_MAX: usize = 128;

/// A SHA-256 digest, written as `sha256:` and 64 lower-case hexadecimal digits (OCI image specification, "Digests").
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    /// Computes the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hex::encode(digest(&SHA256, bytes)))
    }

    /// Returns the 64 hexadecimal digits.
    pub fn hexadecimal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let digits = text.strip_prefix("sha256:").ok_or(ReferenceError::Digest)?;
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != DIGITS || !digits.bytes().all(is_digit) {
            return Err(ReferenceError::Digest);
        }
        Ok(Self(digits.to_owned()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", self.0)
    }
}

/// The number of hexadecimal digits.
const DIGITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn parsing_and_display_round_trip() {
        for repository in [
            "oci://registry.example.com/wireguard",
            "oci://registry.example.com:5000/team/plugins/wire-guard__x:1.0.0",
            "oci://127.0.0.1:5000/a:_",
            "oci://[::1]:5000/a",
            "oci://[::1]/a.b",
        ] {
            let text = format!("{repository}@{DIGEST}");
            let reference: PinnedReference = text.parse().unwrap();
            assert_eq!(reference.to_string(), text);
            assert_eq!(*reference.digest(), Digest::of(b""));
        }
    }

    #[test]
    fn malformed_references_are_rejected_with_the_cause() {
        use ReferenceError as Malformed;
        let longest = "a".repeat(REPOSITORY_BYTES_MAX);
        let (digits, shorter) = (&DIGEST[7..], &DIGEST[..DIGEST.len() - 1]);
        let upper = digits.to_uppercase();
        let tag = "t".repeat(TAG_BYTES_MAX);
        let host = format!("{}.example", "h".repeat(HOST_BYTES_MAX - 8));
        for (text, expected) in [
            (format!("oci://h/{longest}:{tag}@{DIGEST}"), None),
            (format!("oci://{host}/a@{DIGEST}"), None),
            (format!("oci://h{host}/a@{DIGEST}"), Some(Malformed::Host)),
            (
                format!("oci://h/{longest}a@{DIGEST}"),
                Some(Malformed::Repository),
            ),
            (format!("oci://h/a:{tag}t@{DIGEST}"), Some(Malformed::Tag)),
            (format!("oci://h/a:@{DIGEST}"), Some(Malformed::Tag)),
            (format!("oci://h/a:-1@{DIGEST}"), Some(Malformed::Tag)),
            (format!("oci://h/a:1+1@{DIGEST}"), Some(Malformed::Tag)),
            (format!("oci://my-host/v2@{DIGEST}"), None),
            ("oci://h/a:1.0".to_owned(), Some(Malformed::DigestMissing)),
            ("oci://h/a".to_owned(), Some(Malformed::DigestMissing)),
            (format!("oci://h/a@{digits}"), Some(Malformed::Digest)),
            (
                format!("oci://h/a@sha512:{digits}"),
                Some(Malformed::Digest),
            ),
            (format!("oci://h/a@sha256:{upper}"), Some(Malformed::Digest)),
            (format!("oci://h/a@{DIGEST}0"), Some(Malformed::Digest)),
            (format!("oci://h/a@{shorter}"), Some(Malformed::Digest)),
            (format!("oci://h/a@{shorter}g"), Some(Malformed::Digest)),
            (format!("oci://h@{DIGEST}"), Some(Malformed::Repository)),
            (format!("oci://h/@{DIGEST}"), Some(Malformed::Repository)),
            (format!("oci://h/A@{DIGEST}"), Some(Malformed::Repository)),
            (format!("oci://h/a/@{DIGEST}"), Some(Malformed::Repository)),
            (
                format!("oci://h/a..b@{DIGEST}"),
                Some(Malformed::Repository),
            ),
            (
                format!("oci://h/../a@{DIGEST}"),
                Some(Malformed::Repository),
            ),
            (format!("oci://h/a?b@{DIGEST}"), Some(Malformed::Repository)),
            (format!("oci:///a@{DIGEST}"), Some(Malformed::Host)),
            (
                format!("oci://user:pass@h/a@{DIGEST}"),
                Some(Malformed::Host),
            ),
            (format!("oci://h:0/a@{DIGEST}"), Some(Malformed::Port)),
            (format!("oci://h:65536/a@{DIGEST}"), Some(Malformed::Port)),
            (format!("oci://h:+1/a@{DIGEST}"), Some(Malformed::Host)),
            (format!("oci://h\n/a@{DIGEST}"), Some(Malformed::Host)),
            (format!("https://h/a@{DIGEST}"), Some(Malformed::Scheme)),
        ] {
            assert_eq!(text.parse::<PinnedReference>().err(), expected, "{text}");
        }
    }

    #[test]
    fn push_target_needs_a_tag_and_no_digest() {
        let with = |end: &str| format!("oci://h/a{end}").parse::<PushTarget>();
        assert_eq!(with(":1").unwrap().tag, "1");
        assert_eq!(with(""), Err(ReferenceError::TagMissing));
        let digest = format!(":1@{DIGEST}");
        assert_eq!(with(&digest), Err(ReferenceError::DigestGiven));
    }

    #[test]
    fn loopback_hosts_are_recognized() {
        for (host, expected) in [
            ("localhost", true),
            ("LOCALHOST:5000", true),
            ("127.0.0.1:5000", true),
            ("127.8.8.8", true),
            ("[::1]:5000", true),
            ("[::1]", true),
            ("[::2]", false),
            ("localhost.example.com", false),
            ("128.0.0.1:5000", false),
        ] {
            let host: RegistryHost = host.parse().unwrap();
            assert_eq!(host.is_loopback(), expected, "{host}");
        }
    }
}
