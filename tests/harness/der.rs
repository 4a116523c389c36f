//! DER as a tree whose elements can be changed individually, even into invalid DER.

use base64::{Engine as _, engine::general_purpose::STANDARD};
pub use keywright_der::tag::{
    BIT_STRING, BOOLEAN, INTEGER, NULL, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, SET, UTC_TIME,
    UTF8_STRING,
};
use rcgen::{KeyPair, SigningKey};
use rustls::pki_types::{CertificateDer, pem::PemObject};

/// An element.
#[derive(Clone)]
pub struct Node {
    /// The tag.
    pub tag: u8,
    /// The encoding of its length.
    pub length: Length,
    /// The content.
    pub content: Content,
}

/// The content of an element.
#[derive(Clone)]
pub enum Content {
    /// Bytes that are no elements.
    Bytes(Vec<u8>),
    /// Leading bytes, such as the count of unused bits, and the inner elements.
    Nodes(Vec<u8>, Vec<Node>),
}

/// The encoding of an element's length.
#[derive(Clone, Copy)]
pub enum Length {
    /// As DER requires.
    Shortest,
    /// With a leading zero.
    Padded,
    /// Without a length, and with an end mark.
    Indefinite,
}

impl Node {
    /// Returns an element with these bytes.
    pub fn new(tag: u8, bytes: &[u8]) -> Self {
        Self {
            tag,
            length: Length::Shortest,
            content: Content::Bytes(bytes.to_vec()),
        }
    }

    /// Returns an element with these inner elements.
    pub fn of(tag: u8, nodes: Vec<Self>) -> Self {
        Self {
            tag,
            length: Length::Shortest,
            content: Content::Nodes(Vec::new(), nodes),
        }
    }

    /// Returns the element null.
    pub fn null() -> Self {
        Self::new(NULL, &[])
    }

    /// Parses bytes that contain exactly one element.
    pub fn parse(bytes: &[u8]) -> Self {
        let [node] = <[Self; 1]>::try_from(parse_all(bytes).unwrap())
            .ok()
            .unwrap();
        node
    }

    /// Encodes the element.
    pub fn to_der(&self) -> Vec<u8> {
        let mut content = Vec::new();
        match &self.content {
            Content::Bytes(bytes) => content.extend(bytes),
            Content::Nodes(before, nodes) => {
                content.extend(before);
                content.extend(nodes.iter().flat_map(Self::to_der));
            }
        }
        let mut digits: Vec<u8> = content.len().to_be_bytes().to_vec();
        digits.drain(..digits.iter().take_while(|digit| **digit == 0).count());
        let count = |digits: &[u8]| 0x80 | u8::try_from(digits.len()).unwrap();
        let length = match self.length {
            Length::Shortest if content.len() < 0x80 => vec![u8::try_from(content.len()).unwrap()],
            Length::Shortest => [&[count(&digits)], digits.as_slice()].concat(),
            Length::Padded => {
                // A short length is padded by encoding it in one more byte.
                if content.len() >= 0x80 {
                    digits.insert(0, 0);
                }
                digits.resize(digits.len().max(1), 0);
                [&[count(&digits)], digits.as_slice()].concat()
            }
            Length::Indefinite => {
                content.extend([0, 0]);
                vec![0x80]
            }
        };
        [&[self.tag], length.as_slice(), &content].concat()
    }

    /// Returns this certificate, signed again with this key by the algorithm that it names. The key is of type P-256.
    pub fn signed_again(mut self, key: &KeyPair) -> Vec<u8> {
        let signature = key.sign(&self.at(&[0]).to_der()).unwrap();
        *self.at(&[2]) = Self::new(BIT_STRING, &[&[0], signature.as_slice()].concat());
        self.to_der()
    }

    /// Returns the inner elements.
    pub fn nodes(&mut self) -> &mut Vec<Self> {
        match &mut self.content {
            Content::Nodes(_, nodes) => nodes,
            Content::Bytes(_) => panic!("an element of tag {:#x} has no elements", self.tag),
        }
    }

    /// Returns the bytes.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        match &mut self.content {
            Content::Bytes(bytes) => bytes,
            Content::Nodes(..) => panic!("an element of tag {:#x} has elements", self.tag),
        }
    }

    /// Returns whether it has inner elements.
    pub fn has_nodes(&self) -> bool {
        matches!(self.content, Content::Nodes(..))
    }

    /// Returns the element at the end of a path.
    pub fn at(&mut self, path: &[usize]) -> &mut Self {
        path.iter()
            .fold(self, |node, position| &mut node.nodes()[*position])
    }

    /// Returns the paths to all elements, this one first.
    pub fn paths(&self) -> Vec<Vec<usize>> {
        let mut paths = vec![Vec::new()];
        if let Content::Nodes(_, nodes) = &self.content {
            for (position, node) in nodes.iter().enumerate() {
                let below = node.paths();
                paths.extend(
                    below
                        .into_iter()
                        .map(|path| [&[position], path.as_slice()].concat()),
                );
            }
        }
        paths
    }
}

/// Parses bytes that consist of elements. Returns `None` if some bytes don't belong to an element.
fn parse_all(mut bytes: &[u8]) -> Option<Vec<Node>> {
    let mut nodes = Vec::new();
    while let [tag, first, rest @ ..] = bytes {
        let (length, rest) = match usize::from(*first) {
            short @ ..0x80 => (short, rest),
            long => {
                let (digits, rest) = rest.split_at_checked(long - 0x80)?;
                (
                    digits
                        .iter()
                        .fold(0, |length, digit| (length << 8) | usize::from(*digit)),
                    rest,
                )
            }
        };
        let (content, rest) = rest.split_at_checked(length)?;
        nodes.push(Node {
            tag: *tag,
            length: Length::Shortest,
            content: parse_content(*tag, content)?,
        });
        bytes = rest;
    }
    bytes.is_empty().then_some(nodes)
}

/// Parses the content of an element, including the elements in the octets of an extension and in the bits of a key.
fn parse_content(tag: u8, content: &[u8]) -> Option<Content> {
    let within = |before: &[u8], inner: &[u8]| {
        let nodes = parse_all(inner).filter(|nodes| nodes.len() == 1)?;
        Some(Content::Nodes(before.to_vec(), nodes))
    };
    if tag & 0x20 != 0 {
        return Some(Content::Nodes(Vec::new(), parse_all(content)?));
    }
    let found = match (tag, content) {
        (OCTET_STRING, inner @ [SEQUENCE | BIT_STRING | OCTET_STRING, ..]) => within(&[], inner),
        (BIT_STRING, [0, inner @ ..]) if inner.first() == Some(&SEQUENCE) => within(&[0], inner),
        _ => None,
    };
    Some(found.unwrap_or_else(|| Content::Bytes(content.to_vec())))
}

/// Returns the first certificate of a text as DER.
pub fn certificate(pem: &str) -> Vec<u8> {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes());
    certificate.unwrap().to_vec()
}

/// Returns a certificate as PEM, in lines of 64 characters.
pub fn certificate_pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text
        .as_bytes()
        .chunks(64)
        .map(String::from_utf8_lossy)
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}
