//! Malformed certificate bodies, derived from a well-formed one.

use super::tree::{
    BIT_STRING, BOOLEAN, Content, INTEGER, Length, Node, OBJECT_IDENTIFIER, UTC_TIME, UTF8_STRING,
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
pub(crate) const VERSION: usize = 0;
pub(crate) const SERIAL: usize = 1;
pub(crate) const ALGORITHM: usize = 2;
pub(crate) const ISSUER: usize = 3;
pub(crate) const VALIDITY: usize = 4;
pub(crate) const SUBJECT: usize = 5;
pub(crate) const PUBLIC_KEY: usize = 6;
pub(crate) const EXTENSIONS: usize = 7;

/// Breaks each encoding rule at each element to which it applies.
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

/// Returns the same octets as one segment of a constructed element, which is only valid in BER.
fn constructed(node: &mut Node) {
    let segment = node.clone();
    *node = Node::of(node.tag | CONSTRUCTED, vec![segment]);
}

/// Returns contents that are invalid for every tag.
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

/// Returns the position of the last arc.
fn last_arc(identifier: &[u8]) -> usize {
    let before = &identifier[..identifier.len() - 1];
    before
        .iter()
        .rposition(|byte| *byte < 0x80)
        .map_or(0, |position| position + 1)
}

/// Adds 2^32 to the last arc, of one octet: the same number for a parser that uses 32 bits.
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
