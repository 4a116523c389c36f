//! Builds nodes from YAML events, and expands aliases and merge keys.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
};

use granit_parser::{Event, ScalarStyle, Tag};
use zeroize::Zeroizing;

use super::{ANCHORS_BYTES_MAX, ENTRY_BYTES_MAX, FileError, yaml::Events};
use crate::transfer::node::{DEPTH_MAX, Node, Reason, Scalar, TOO_DEEP};

/// Builds nodes, and stores anchored nodes.
#[derive(Default)]
pub(super) struct Builder {
    anchors: HashMap<usize, Anchored>,
    anchors_bytes: usize,
    /// The size of all expanded aliases in the current node.
    aliased_bytes: usize,
    /// The first error in the current node. The rest of the node is still read.
    reason: Option<Reason>,
}

/// A node with an anchor.
struct Anchored {
    node: Node,
    bytes: usize,
    depth: usize,
}

/// An invalid node. Reading can continue after it.
pub(super) struct NodeError {
    /// The readable part of the node.
    pub(super) node: Option<Node>,
    pub(super) reason: Reason,
}

/// The outer error concerns the whole file, the inner one only the node.
pub(super) type Built = Result<Result<Node, NodeError>, FileError>;

impl Builder {
    /// Builds the node that starts with this event.
    pub(super) fn build<R: Read>(
        &mut self,
        events: &mut Events<R>,
        event: Event<'static>,
    ) -> Built {
        self.aliased_bytes = 0;
        self.reason = None;
        let node = self.node(events, event, 0)?;
        Ok(match self.reason.take() {
            None => Ok(node),
            Some(reason) => Err(NodeError {
                node: Some(node),
                reason,
            }),
        })
    }

    fn node<R: Read>(
        &mut self,
        events: &mut Events<R>,
        event: Event<'static>,
        depth: usize,
    ) -> Result<Node, FileError> {
        if depth > DEPTH_MAX {
            self.refuse(TOO_DEEP);
        }
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = self.scalar(text.into_owned(), style, tag.as_deref());
                (scalar, anchor)
            }
            Event::Alias(anchor) => return Ok(self.aliased(anchor, depth)),
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq");
                (self.list(events, depth)?, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map");
                (self.mapping(events, depth)?, anchor)
            }
            _ => {
                self.refuse(ALIAS_UNKNOWN);
                (Node::null(), NO_ANCHOR)
            }
        };
        if anchor != NO_ANCHOR {
            self.store(anchor, &node)?;
        }
        Ok(node)
    }

    /// Stores an anchored node. Skips invalid nodes, so that aliases of them are refused as well.
    fn store(&mut self, anchor: usize, node: &Node) -> Result<(), FileError> {
        if self.reason.is_some() {
            return Ok(());
        }
        let anchored = Anchored {
            bytes: node.bytes(),
            depth: node.depth(),
            node: node.clone(),
        };
        self.anchors_bytes += anchored.bytes;
        if self.anchors_bytes > ANCHORS_BYTES_MAX {
            return Err(FileError::AnchorsTooLarge);
        }
        self.anchors.insert(anchor, anchored);
        Ok(())
    }

    fn scalar(&mut self, text: String, style: ScalarStyle, tag: Option<&Tag>) -> Node {
        let is_plain = style == ScalarStyle::Plain;
        let is_quoted = match tag.map(Tag::core_suffix) {
            None => !is_plain,
            Some(Some("str")) => true,
            Some(Some("null" | "bool" | "int" | "float")) => false,
            Some(_) => {
                self.refuse(TAG_UNKNOWN);
                true
            }
        };
        Node::Scalar(Scalar {
            text: Zeroizing::new(text),
            is_quoted,
        })
    }

    fn check_tag(&mut self, tag: Option<&Tag>, expected: &str) {
        if tag.is_some_and(|tag| tag.core_suffix() != Some(expected)) {
            self.refuse(TAG_UNKNOWN);
        }
    }

    /// Returns the node of an alias. An alias inside its own anchored node is refused, because that node is not stored yet.
    fn aliased(&mut self, anchor: usize, depth: usize) -> Node {
        let reason = match self.anchors.get(&anchor) {
            None => ALIAS_UNKNOWN,
            Some(anchored) if depth + anchored.depth > DEPTH_MAX => TOO_DEEP,
            Some(anchored) => {
                self.aliased_bytes = self.aliased_bytes.saturating_add(anchored.bytes);
                if self.aliased_bytes <= ENTRY_BYTES_MAX {
                    return anchored.node.clone();
                }
                ALIASES_TOO_LARGE
            }
        };
        self.refuse(reason);
        Node::null()
    }

    fn list<R: Read>(&mut self, events: &mut Events<R>, depth: usize) -> Result<Node, FileError> {
        let mut nodes = Vec::new();
        loop {
            match events.next()?.0 {
                Event::SequenceEnd => return Ok(Node::List(nodes)),
                event => nodes.push(self.node(events, event, depth + 1)?),
            }
        }
    }

    fn mapping<R: Read>(
        &mut self,
        events: &mut Events<R>,
        depth: usize,
    ) -> Result<Node, FileError> {
        let mut entries = Vec::new();
        let mut keys = HashSet::new();
        let mut merged = Vec::new();
        loop {
            let key = match events.next()?.0 {
                Event::MappingEnd => break,
                key => self.node(events, key, depth + 1)?,
            };
            let (value, _) = events.next()?;
            let value = self.node(events, value, depth + 1)?;
            let Node::Scalar(key) = key else {
                self.refuse(KEY_NOT_A_TEXT);
                continue;
            };
            if !key.is_quoted && key.text.as_str() == "<<" {
                merged.push(value);
                continue;
            }
            if !keys.insert(key.text.to_string()) {
                self.refuse(KEY_DUPLICATE);
            }
            entries.push((key.text.to_string(), value));
        }
        for value in merged {
            self.merge(value, &mut entries, &mut keys);
        }
        Ok(Node::Mapping(entries))
    }

    /// Adds the missing keys from a mapping or a list of mappings.
    fn merge(
        &mut self,
        value: Node,
        entries: &mut Vec<(String, Node)>,
        keys: &mut HashSet<String>,
    ) {
        let mappings = match value {
            Node::List(nodes) => nodes,
            node => vec![node],
        };
        for mapping in mappings {
            let Node::Mapping(added) = mapping else {
                self.refuse(MERGE_NOT_A_MAPPING);
                continue;
            };
            for (key, node) in added {
                if keys.insert(key.clone()) {
                    entries.push((key, node));
                }
            }
        }
    }

    fn refuse(&mut self, reason: Reason) {
        self.reason.get_or_insert(reason);
    }
}

/// The id of nodes without an anchor.
const NO_ANCHOR: usize = 0;

const ALIAS_UNKNOWN: Reason =
    "an alias refers to an undefined or invalid anchor; quote strings that start with an asterisk";
const ALIASES_TOO_LARGE: Reason = "aliases expand to more than 1 MiB";
const TAG_UNKNOWN: Reason = "a tag is not in YAML's core schema";
const KEY_NOT_A_TEXT: Reason = "a key is not a string";
const KEY_DUPLICATE: Reason = "a mapping has a duplicate key";
const MERGE_NOT_A_MAPPING: Reason = "a merge key has a value that is not a mapping";
