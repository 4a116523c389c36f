//! References to what is in registries: `oci://HOST[:PORT]/REPOSITORY[:TAG][@DIGEST]`.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
};

use crate::{Digest, DigestMalformed};

/// Whether a text is meant as a reference, well formed or not.
#[must_use]
pub fn is_reference(text: &str) -> bool {
    text.starts_with(SCHEME)
}

/// A reference to one manifest, by its digest. A tag may stand in it for people; it is never looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedReference {
    pub(crate) place: Place,
    pub(crate) tag: Option<String>,
    pub(crate) digest: Digest,
}

/// Where something is to be pushed: a repository, and the tag that it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushTarget {
    pub(crate) place: Place,
    pub(crate) tag: String,
}

/// A repository of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: RegistryHost,
    pub(crate) repository: String,
}

/// The host of a registry, with its port if it has another than that of its protocol. In lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegistryHost(String);

/// Why a text is no reference, in words that say what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceMalformed {
    /// The digest is none.
    #[error("its digest is none: {0}")]
    Digest(DigestMalformed),
    /// There is a digest where the registry is to say it.
    #[error("a push makes the digest, so it must not be in the reference; name a tag")]
    DigestGiven,
    /// There is no digest.
    #[error(
        "it has no digest, and what a tag names can change: add @sha256:… with the digest of the manifest, which \
         `keywright plugin push` prints, and of what is in the registry `skopeo inspect --format '{{{{.Digest}}}}' \
         docker://HOST/REPOSITORY:TAG`"
    )]
    DigestMissing,
    /// The host is none.
    #[error("its host is none: it is HOST or HOST:PORT, before the first slash")]
    Host,
    /// The repository is none.
    #[error(
        "its repository is none: up to {REPOSITORY_BYTES_MAX} of a-z, 0-9 and, between them, one . or _, two _, or any \
         number of -, in pieces with slashes between them"
    )]
    Repository,
    /// It does not begin as references do.
    #[error("it does not begin with oci://")]
    Scheme,
    /// The tag is none.
    #[error(
        "its tag is none: up to {TAG_BYTES_MAX} of A-Z, a-z, 0-9, _, . and -, and neither . nor - first"
    )]
    Tag,
    /// There is no tag.
    #[error("it has no tag: add one, as in oci://HOST/REPOSITORY:1.0.0")]
    TagMissing,
}

impl PinnedReference {
    /// The registry that it is in.
    #[must_use]
    pub fn host(&self) -> &RegistryHost {
        &self.place.host
    }

    /// The digest of the manifest.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

impl PushTarget {
    /// The registry that it is in.
    #[must_use]
    pub fn host(&self) -> &RegistryHost {
        &self.place.host
    }
}

impl RegistryHost {
    /// Whether it is this machine itself, so that nothing of what is sent there leaves it: `localhost`, or an address of the
    /// loopback network.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let (name, _) = split_port(&self.0).unwrap_or((&self.0, None));
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost"
            || address
                .parse()
                .is_ok_and(|address: IpAddr| address.is_loopback())
    }

    /// The host, and the port if there is one.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PinnedReference {
    type Err = ReferenceMalformed;

    fn from_str(text: &str) -> Result<Self, ReferenceMalformed> {
        let (place, tag, digest) = parts(text)?;
        let digest = digest.ok_or(ReferenceMalformed::DigestMissing)?;
        Ok(Self { place, tag, digest })
    }
}

impl FromStr for PushTarget {
    type Err = ReferenceMalformed;

    fn from_str(text: &str) -> Result<Self, ReferenceMalformed> {
        match parts(text)? {
            (_, _, Some(_)) => Err(ReferenceMalformed::DigestGiven),
            (_, None, None) => Err(ReferenceMalformed::TagMissing),
            (place, Some(tag), None) => Ok(Self { place, tag }),
        }
    }
}

impl FromStr for RegistryHost {
    type Err = ReferenceMalformed;

    fn from_str(text: &str) -> Result<Self, ReferenceMalformed> {
        let (name, port) = split_port(text).ok_or(ReferenceMalformed::Host)?;
        let address = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let is_name = match address {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => is_host_name(name),
        };
        if !is_name || port == Some(0) {
            return Err(ReferenceMalformed::Host);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

impl fmt::Display for PinnedReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.place)?;
        if let Some(tag) = &self.tag {
            write!(formatter, ":{tag}")?;
        }
        write!(formatter, "@{}", self.digest)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}/{}", self.host, self.repository)
    }
}

impl fmt::Display for RegistryHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The parts of a reference.
fn parts(text: &str) -> Result<(Place, Option<String>, Option<Digest>), ReferenceMalformed> {
    let rest = text
        .strip_prefix(SCHEME)
        .ok_or(ReferenceMalformed::Scheme)?;
    let (host, rest) = rest.split_once('/').ok_or(ReferenceMalformed::Repository)?;
    let host = host.parse()?;
    let (rest, digest) = match rest.split_once('@') {
        Some((rest, digest)) => {
            let digest = digest.parse().map_err(ReferenceMalformed::Digest)?;
            (rest, Some(digest))
        }
        None => (rest, None),
    };
    let (repository, tag) = match rest.split_once(':') {
        Some((_, tag)) if !is_tag(tag) => return Err(ReferenceMalformed::Tag),
        Some((repository, tag)) => (repository, Some(tag.to_owned())),
        None => (rest, None),
    };
    if !is_repository(repository) {
        return Err(ReferenceMalformed::Repository);
    }
    let repository = repository.to_owned();
    Ok((Place { host, repository }, tag, digest))
}

/// A host and its port; nothing where the port is none.
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
        let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_taken)
    };
    text.len() <= HOST_BYTES_MAX && text.split('.').all(is_label)
}

/// As the distribution specification has it: `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`, in pieces with slashes between them.
fn is_repository(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_piece = |piece: &str| {
        let mut separators = piece.split(|letter: char| u8::try_from(letter).is_ok_and(is_word));
        let is_separator = |separator: &str| {
            matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        };
        let ends = [piece.bytes().next(), piece.bytes().next_back()];
        ends.into_iter().all(|end| end.is_some_and(is_word)) && separators.all(is_separator)
    };
    text.len() <= REPOSITORY_BYTES_MAX && text.split('/').all(is_piece)
}

/// As the distribution specification has it: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}`.
fn is_tag(text: &str) -> bool {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    !text.is_empty()
        && text.len() <= TAG_BYTES_MAX
        && !text.starts_with(['.', '-'])
        && text.bytes().all(is_taken)
}

/// How references begin.
const SCHEME: &str = "oci://";
/// The longest name of a host, in bytes (RFC 1035).
const HOST_BYTES_MAX: usize = 253;
/// The longest name of a repository, in bytes.
const REPOSITORY_BYTES_MAX: usize = 255;
/// The longest tag, in bytes.
const TAG_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_reference_is_written_as_it_is_read() {
        for place in [
            "oci://registry.example.com/wireguard",
            "oci://registry.example.com:5000/team/plugins/wire-guard__x:1.0.0",
            "oci://127.0.0.1:5000/a:_",
            "oci://[::1]:5000/a",
            "oci://[::1]/a.b",
        ] {
            let text = format!("{place}@{DIGEST}");
            let reference: PinnedReference = text.parse().unwrap();
            assert_eq!(reference.to_string(), text);
            assert_eq!(reference.digest().to_string(), DIGEST);
        }
    }

    #[test]
    fn each_mistake_of_a_reference_is_told() {
        use ReferenceMalformed as Malformed;
        let longest = "a".repeat(REPOSITORY_BYTES_MAX);
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
            ("oci://h/a:1.0".to_owned(), Some(Malformed::DigestMissing)),
            ("oci://h/a".to_owned(), Some(Malformed::DigestMissing)),
            (
                "oci://h/a@sha256:12".to_owned(),
                Some(Malformed::Digest(DigestMalformed)),
            ),
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
            (format!("oci://h:0/a@{DIGEST}"), Some(Malformed::Host)),
            (format!("oci://h:65536/a@{DIGEST}"), Some(Malformed::Host)),
            (format!("oci://h:+1/a@{DIGEST}"), Some(Malformed::Host)),
            (format!("oci://h\n/a@{DIGEST}"), Some(Malformed::Host)),
            (format!("https://h/a@{DIGEST}"), Some(Malformed::Scheme)),
        ] {
            assert_eq!(text.parse::<PinnedReference>().err(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_pushed_has_a_tag_and_no_digest() {
        let with = |end: &str| format!("oci://h/a{end}").parse::<PushTarget>();
        assert_eq!(with(":1").unwrap().tag, "1");
        assert_eq!(with(""), Err(ReferenceMalformed::TagMissing));
        let digest = format!(":1@{DIGEST}");
        assert_eq!(with(&digest), Err(ReferenceMalformed::DigestGiven));
    }

    #[test]
    fn this_machine_is_recognised() {
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
