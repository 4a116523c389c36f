//! Attacks on certificate bodies: encodings that DER forbids, structures that X.509 does not define, and rights that were
//! not requested.

use keywright_harness::der::{
    BIT_STRING, BOOLEAN, Content, INTEGER, Length, Node, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE,
    SET, UTC_TIME, UTF8_STRING,
};

/// A change to a body, with its name.
pub(crate) type Attack = (String, Box<dyn Fn(&mut Node)>);

/// The fields of a body, in order.
const FIELDS: [&str; 8] = [
    "version",
    "serial number",
    "algorithm",
    "issuer",
    "validity",
    "subject",
    "public key",
    "extensions",
];
const VERSION: usize = 0;
const SERIAL: usize = 1;
const ALGORITHM: usize = 2;
const ISSUER: usize = 3;
pub(crate) const VALIDITY: usize = 4;
pub(crate) const SUBJECT: usize = 5;
const PUBLIC_KEY: usize = 6;
pub(crate) const EXTENSIONS: usize = 7;

/// Returns attacks that break each encoding rule at each element to which it applies.
pub(crate) fn malformed(body: &Node) -> Vec<Attack> {
    let mut attacks = Vec::new();
    for path in body.paths() {
        // The issuer's name is compared byte by byte.
        if path.first() == Some(&ISSUER) && path.len() > 1 {
            continue;
        }
        for (what, change) in changes(body.clone().at(&path)) {
            let position = path.first().map_or("body", |field| FIELDS[*field]);
            let name = format!("{what}: {position} {:?}", path.get(1..).unwrap_or_default());
            let path = path.clone();
            attacks.push((
                name,
                Box::new(move |body: &mut Node| change(body.at(&path))) as Box<_>,
            ));
        }
    }
    attacks
}

type Change = Box<dyn Fn(&mut Node)>;

/// Returns the ways in which an element can be malformed.
fn changes(node: &Node) -> Vec<(&'static str, Change)> {
    let mut changes: Vec<(&'static str, Change)> = vec![(
        "padded length",
        Box::new(|node| node.length = Length::Padded),
    )];
    if node.has_nodes() {
        changes.push((
            "extra element",
            Box::new(|node| node.nodes().push(Node::null())),
        ));
        changes.push((
            "extra element in front",
            Box::new(|node| node.nodes().insert(0, Node::null())),
        ));
    }
    if node.has_nodes() && node.tag & CONSTRUCTED != 0 {
        changes.push((
            "indefinite length",
            Box::new(|node| node.length = Length::Indefinite),
        ));
        return changes;
    }
    let is_bytes = matches!(node.content, Content::Bytes(_));
    if is_bytes && node.tag < CONSTRUCTED {
        changes.push(("constructed", Box::new(constructed)));
    }
    if is_bytes {
        changes.extend(changed_contents(node.tag));
    }
    changes
}

/// Wraps the octets as the only segment of a constructed element, which is only valid in BER.
fn constructed(node: &mut Node) {
    let segment = node.clone();
    *node = Node::of(node.tag | CONSTRUCTED, vec![segment]);
}

/// Returns contents that are invalid for this tag.
fn changed_contents(tag: u8) -> Vec<(&'static str, Change)> {
    fn bytes(change: impl Fn(&mut Vec<u8>) + 'static) -> Change {
        Box::new(move |node| change(node.bytes()))
    }
    fn text(text: &'static [u8]) -> Change {
        bytes(move |bytes| bytes.splice(.., text.iter().copied()).for_each(drop))
    }
    match tag {
        BOOLEAN => vec![
            ("boolean of 1", text(&[1])),
            ("boolean of two octets", text(&[0xff, 0xff])),
        ],
        INTEGER => vec![
            ("padded integer", bytes(|bytes| bytes.insert(0, 0))),
            ("empty integer", bytes(Vec::clear)),
        ],
        BIT_STRING => vec![
            ("eight unused bits", bytes(|bytes| bytes[0] = 8)),
            ("no count of unused bits", bytes(Vec::clear)),
            ("unused bits that are set", text(&[3, 0x84])),
        ],
        OBJECT_IDENTIFIER => vec![
            (
                "padded arc",
                bytes(|bytes| bytes.insert(last_arc(bytes), 0x80)),
            ),
            ("arc that overflows 32 bits", bytes(overflown)),
            ("open arc", bytes(|bytes| bytes.push(0x81))),
            ("empty object identifier", bytes(Vec::clear)),
        ],
        UTF8_STRING => vec![
            ("byte that is not UTF-8", bytes(|bytes| bytes.push(0xff))),
            ("overlong UTF-8", bytes(|bytes| bytes.extend([0xc0, 0xae]))),
            (
                "surrogate in UTF-8",
                bytes(|bytes| bytes.extend([0xed, 0xa0, 0x80])),
            ),
            (
                "UTF-8 that ends within a character",
                bytes(|bytes| bytes.push(0xc3)),
            ),
        ],
        PRINTABLE_STRING => vec![
            ("asterisk in a PrintableString", text(b"*")),
            ("at sign in a PrintableString", text(b"@")),
            ("umlaut in a PrintableString", text("ü".as_bytes())),
        ],
        UTC_TIME => vec![
            ("time without a zone", bytes(|bytes| bytes.truncate(12))),
            (
                "time with an offset",
                bytes(|bytes| bytes.splice(12.., *b"+0000").for_each(drop)),
            ),
            (
                "time without seconds",
                bytes(|bytes| drop(bytes.drain(10..12))),
            ),
            (
                "time with a fraction",
                bytes(|bytes| bytes.splice(12.., *b".5Z").for_each(drop)),
            ),
            (
                "thirteenth month",
                bytes(|bytes| bytes[2..4].copy_from_slice(b"13")),
            ),
            ("GeneralizedTime before 2050", Box::new(generalized)),
        ],
        NAME_E_MAIL | NAME_DNS | NAME_URI => vec![
            ("byte that is not ASCII", bytes(|bytes| bytes.push(0x80))),
            ("null character", bytes(|bytes| bytes.push(0))),
        ],
        NAME_ADDRESS => vec![("address of five octets", text(&[1, 2, 3, 4, 5]))],
        _ => vec![],
    }
}

fn last_arc(identifier: &[u8]) -> usize {
    let before = &identifier[..identifier.len() - 1];
    before
        .iter()
        .rposition(|byte| *byte < 0x80)
        .map_or(0, |position| position + 1)
}

/// Adds 2^32 to the last arc, which must have one octet. A parser with 32-bit integers reads the original arc.
fn overflown(identifier: &mut Vec<u8>) {
    let at = last_arc(identifier);
    identifier
        .splice(at..at, [0x90, 0x80, 0x80, 0x80])
        .for_each(drop);
}

fn generalized(node: &mut Node) {
    node.bytes().splice(..0, *b"20").for_each(drop);
    node.tag = 0x18;
}

const CONSTRUCTED: u8 = 0x20;
const PRINTABLE_STRING: u8 = 0x13;
const NAME_E_MAIL: u8 = 0x81;
const NAME_DNS: u8 = 0x82;
const NAME_URI: u8 = 0x86;
const NAME_ADDRESS: u8 = 0x87;

/// Returns structures that X.509 does not define, and rights that were not requested.
pub(crate) fn overreaching(root: &Node) -> Vec<Attack> {
    let mut attacks = structures();
    attacks.extend(rsa_keys());
    attacks.extend(rights(root));
    attacks.extend(extensions());
    attacks
}

/// Elements that X.509 does not define: the position, and the tag and the contents that replace it.
const ELEMENTS: [(&str, &[usize], u8, &[u8]); 8] = [
    ("serial number of zero", &[SERIAL], INTEGER, &[0]),
    ("negative serial number", &[SERIAL], INTEGER, &[0x80]),
    ("serial number of 21 octets", &[SERIAL], INTEGER, &[1; 21]),
    ("not a string", ATTRIBUTE, OCTET_STRING, b"text"),
    ("BMPString of an odd length", ATTRIBUTE, 0x1e, b"\0a\0"),
    ("half a character", ATTRIBUTE, 0x1e, &[0xd8, 0]),
    ("beyond Unicode", ATTRIBUTE, 0x1c, &[0, 0x11, 0, 0]),
    ("empty public key", &[PUBLIC_KEY, 1], BIT_STRING, &[0]),
];
const ATTRIBUTE: &[usize] = &[SUBJECT, 0, 0, 1];

/// Returns structures that X.509 does not define.
pub(crate) fn structures() -> Vec<Attack> {
    let elements = ELEMENTS.map(|(name, path, tag, contents)| {
        attack(name, move |body| *body.at(path) = Node::new(tag, contents))
    });
    let mut attacks = Vec::from(elements);
    attacks.extend([
        attack("version 1", |body| body.at(&[VERSION, 0]).bytes()[0] = 0),
        attack("version 2", |body| body.at(&[VERSION, 0]).bytes()[0] = 1),
        attack("version 4", |body| body.at(&[VERSION, 0]).bytes()[0] = 3),
        attack("absent version", |body| drop(body.nodes().remove(VERSION))),
        attack("algorithm with parameters", |body| {
            body.at(&[ALGORITHM]).nodes().push(Node::null());
        }),
        attack("no algorithm", |body| body.at(&[ALGORITHM]).nodes().clear()),
        attack("empty issuer", |body| body.at(&[ISSUER]).nodes().clear()),
        attack("validity with one time", |body| {
            drop(body.at(&[VALIDITY]).nodes().pop());
        }),
        attack("validity with three times", |body| {
            let time = body.at(&[VALIDITY, 1]).clone();
            body.at(&[VALIDITY]).nodes().push(time);
        }),
        attack("empty relative name", |body| {
            body.at(&[SUBJECT]).nodes().push(Node::of(SET, vec![]));
        }),
        attack("unsorted relative name", |body| {
            let nodes = ["b", "a"].map(unit);
            body.at(&[SUBJECT])
                .nodes()
                .push(Node::of(SET, nodes.into()));
        }),
        attack("point that is not on its curve", |body| {
            let curve = Node::new(OBJECT_IDENTIFIER, P256);
            set_public_key(body, EC, Some(curve), &[&[4][..], &[7; 64]].concat());
        }),
        attack("compressed point of 31 octets", |body| {
            let curve = Node::new(OBJECT_IDENTIFIER, P256);
            set_public_key(body, EC, Some(curve), &[&[2][..], &[7; 31]].concat());
        }),
        attack("X25519 key of 31 octets", |body| {
            set_public_key(body, &[0x2b, 0x65, 0x6e], None, &[7; 31]);
        }),
        attack("Ed25519 key with parameters", |body| {
            set_public_key(body, &[0x2b, 0x65, 0x70], Some(Node::null()), &[7; 32]);
        }),
        attack("X448 key of 57 octets", |body| {
            set_public_key(body, &[0x2b, 0x65, 0x6f], None, &[7; 57]);
        }),
        attack("Ed448 key of 56 octets", |body| {
            set_public_key(body, &[0x2b, 0x65, 0x71], None, &[7; 56]);
        }),
        attack("issuer unique identifier", |body| {
            body.nodes().insert(EXTENSIONS, Node::new(0x81, &[0, 1]));
        }),
        attack("unknown field", |body| {
            body.nodes().push(Node::new(0x84, &[0, 1]));
        }),
        attack("no extensions", |body| drop(body.nodes().pop())),
        attack("empty list of extensions", |body| {
            body.at(&[EXTENSIONS, 0]).nodes().clear();
        }),
    ]);
    attacks
}

fn set_public_key(body: &mut Node, algorithm: &[u8], parameters: Option<Node>, key: &[u8]) {
    let mut algorithm = vec![Node::new(OBJECT_IDENTIFIER, algorithm)];
    algorithm.extend(parameters);
    let key = Node::new(BIT_STRING, &[&[0], key].concat());
    *body.at(&[PUBLIC_KEY]) = Node::of(SEQUENCE, vec![Node::of(SEQUENCE, algorithm), key]);
}

fn rsa_keys() -> Vec<Attack> {
    vec![
        attack("RSA key without parameters", |body| {
            drop(body.at(&[PUBLIC_KEY, 0]).nodes().pop());
        }),
        attack("RSA key with a negative modulus", |body| {
            *body.at(&[PUBLIC_KEY, 1, 0, 0]) = Node::new(INTEGER, &[0x80; 256]);
        }),
    ]
}

fn rights(root: &Node) -> Vec<Attack> {
    let subject = root.clone().at(&[SUBJECT]).clone();
    let key = root.clone().at(&[PUBLIC_KEY]).clone();
    let key_identifier = extension_of(root, KEY_IDENTIFIER);
    vec![
        attack("CA", |body| {
            set_extension(body, &[19], true, &[0x30, 3, 1, 1, 0xff]);
        }),
        attack("keyCertSign", |body| {
            set_extension(body, &[15], true, &[3, 2, 2, 4]);
        }),
        attack("cRLSign", |body| {
            set_extension(body, &[15], true, &[3, 2, 1, 2]);
        }),
        attack("OCSPSigning", |body| {
            set_extension(
                body,
                &[37],
                false,
                b"\x30\x0a\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x09",
            );
        }),
        attack("Netscape CA for TLS", |body| {
            netscape(body, &[3, 2, 2, 4]);
        }),
        attack("Netscape CA for e-mail", |body| {
            netscape(body, &[3, 2, 1, 2]);
        }),
        attack("Netscape CA for code", |body| {
            netscape(body, &[3, 2, 0, 1]);
        }),
        attack("subject of the issuer", move |body| {
            *body.at(&[SUBJECT]) = subject.clone();
        }),
        attack("key of the issuer", move |body| {
            *body.at(&[PUBLIC_KEY]) = key.clone();
        }),
        attack("key identifier of the issuer", move |body| {
            *find_extension(body, KEY_IDENTIFIER).unwrap() = key_identifier.clone();
        }),
    ]
}

/// The last arc of an extension, whether it is critical, and a value that must be rejected, in hexadecimal digits.
const VALUES: &str = "
    explicit cA FALSE: 19 critical 3003010100
    path length of a leaf: 19 critical 3003020100
    key usage with a trailing zero bit: 15 critical 030204a0
    key usage without a bit: 15 critical 030100
    empty extended key usage: 37 optional 3000
    empty alternative names: 17 optional 3000
    unknown kind of alternative name: 17 optional 30028900
    two alternative names in one value: 17 optional 30038201613003820162
    empty key identifier: 14 optional 0400
    empty list of distribution points: 31 optional 3000
    policy without an identifier: 32 optional 30023000
    policy constraints with a negative count: 36 optional 30038001ff
    minimum of zero in name constraints: 30 optional 300aa1083006820161800100
    network without a mask: 30 optional 300aa108300687040a000000
    unknown extension that is not DER: 99 optional 300574657874
    unknown critical extension: 99 critical 0500
";

fn extensions() -> Vec<Attack> {
    let values = VALUES.trim().lines().map(|line| {
        let (name, rest) = line.trim().split_once(": ").unwrap();
        let [arc, criticality, digits] = rest.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let arc = arc.parse().unwrap();
        let (is_critical, value) = (criticality == "critical", hex::decode(digits).unwrap());
        attack(name, move |body| {
            set_extension(body, &[arc], is_critical, &value);
        })
    });
    let mut attacks: Vec<Attack> = values.collect();
    attacks.push(attack("duplicate extension", |body| {
        let extension = body.at(&[EXTENSIONS, 0, 0]).clone();
        body.at(&[EXTENSIONS, 0]).nodes().push(extension);
    }));
    attacks.push(attack("explicit critical FALSE", |body| {
        let extension = find_extension(body, KEY_IDENTIFIER).unwrap();
        extension.nodes().insert(1, Node::new(BOOLEAN, &[0]));
    }));
    attacks.push(attack(
        "basic constraints of a CA with a padded arc",
        |body| {
            let mut extension = find_extension(body, &[19]).unwrap().clone();
            *extension.at(&[0]) = Node::new(OBJECT_IDENTIFIER, &[0x55, 0x1d, 0x80, 19]);
            *extension.nodes().last_mut().unwrap() =
                Node::new(OCTET_STRING, &[0x30, 3, 1, 1, 0xff]);
            body.at(&[EXTENSIONS, 0]).nodes().push(extension);
        },
    ));
    attacks
}

fn attack(name: &str, change: impl Fn(&mut Node) + 'static) -> Attack {
    (name.to_owned(), Box::new(change))
}

/// Returns an attribute with an organizational unit.
pub(crate) fn unit(text: &str) -> Node {
    let identifier = Node::new(OBJECT_IDENTIFIER, &[0x55, 0x04, 0x0b]);
    Node::of(
        SEQUENCE,
        vec![identifier, Node::new(UTF8_STRING, text.as_bytes())],
    )
}

/// Replaces the X.509 extension with this arc, or appends it.
pub(crate) fn set_extension(body: &mut Node, arc: &[u8], is_critical: bool, value: &[u8]) {
    put_extension(body, &[&[0x55, 0x1d], arc].concat(), is_critical, value);
}

/// Replaces the extension with this identifier, or appends it.
pub(crate) fn put_extension(body: &mut Node, identifier: &[u8], is_critical: bool, value: &[u8]) {
    let mut nodes = vec![Node::new(OBJECT_IDENTIFIER, identifier)];
    if is_critical {
        nodes.push(Node::new(BOOLEAN, &[0xff]));
    }
    nodes.push(Node::new(OCTET_STRING, value));
    let extensions = body.at(&[EXTENSIONS, 0]).nodes();
    extensions.retain_mut(|extension| extension.at(&[0]).bytes() != identifier);
    extensions.push(Node::of(SEQUENCE, nodes));
}

fn netscape(body: &mut Node, value: &[u8]) {
    put_extension(body, b"\x60\x86\x48\x01\x86\xf8\x42\x01\x01", false, value);
}

fn extension_of(body: &Node, arc: &[u8]) -> Node {
    find_extension(&mut body.clone(), arc).unwrap().clone()
}

/// Returns the X.509 extension with this arc.
fn find_extension<'a>(body: &'a mut Node, arc: &[u8]) -> Option<&'a mut Node> {
    let identifier = [&[0x55, 0x1d], arc].concat();
    let mut extensions = body.at(&[EXTENSIONS, 0]).nodes().iter_mut();
    extensions
        .find_map(|extension| (*extension.at(&[0]).bytes() == identifier).then_some(extension))
}

const KEY_IDENTIFIER: &[u8] = &[14];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
