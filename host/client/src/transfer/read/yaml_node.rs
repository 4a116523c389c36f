//! Putting the events of YAML together to nodes, with aliases and merge keys put in.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
};

use granit_parser::{Event, ScalarStyle, Tag};
use zeroize::Zeroizing;

use super::{ANCHORS_BYTES_MAX, ENTRY_BYTES_MAX, FileRefused, yaml::Events};
use crate::transfer::node::{DEPTH_MAX, Node, Reason, Scalar, TOO_DEEP};

/// Builds nodes, and knows what aliases refer to.
#[derive(Default)]
pub(super) struct Builder {
    anchors: HashMap<usize, Anchored>,
    anchors_bytes: usize,
    /// How much aliases have put into the node that is being built.
    aliased_bytes: usize,
    /// The first thing that is wrong with the node that is being built, while the rest of it is read.
    reason: Option<Reason>,
}

/// A node that aliases may stand for.
struct Anchored {
    node: Node,
    bytes: usize,
    depth: usize,
}

/// A node that can't be used. The file can be read on behind it.
pub(super) struct NodeRefused {
    /// What of it could be read.
    pub(super) node: Option<Node>,
    /// What is wrong.
    pub(super) reason: Reason,
}

/// What is refused about a whole file, or about a node alone.
pub(super) type Built = Result<Result<Node, NodeRefused>, FileRefused>;

impl Builder {
    /// Builds the node that begins with an event.
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
            Some(reason) => Err(NodeRefused {
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
    ) -> Result<Node, FileRefused> {
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
            self.keep(anchor, &node)?;
        }
        Ok(node)
    }

    /// Keeps what an anchor stands before. What is wrong is not kept, so that its aliases are refused too.
    fn keep(&mut self, anchor: usize, node: &Node) -> Result<(), FileRefused> {
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
            return Err(FileRefused::AnchorsTooLarge);
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

    /// What an alias refers to. Nodes that hold themselves are not there yet when their alias is.
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

    fn list<R: Read>(&mut self, events: &mut Events<R>, depth: usize) -> Result<Node, FileRefused> {
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
    ) -> Result<Node, FileRefused> {
        let mut members = Vec::new();
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
                self.refuse(KEY_TWICE);
            }
            members.push((key.text.to_string(), value));
        }
        for value in merged {
            self.merge(value, &mut members, &mut keys);
        }
        Ok(Node::Mapping(members))
    }

    /// Adds the members of a mapping, or of each in a list, that are not there yet.
    fn merge(
        &mut self,
        value: Node,
        members: &mut Vec<(String, Node)>,
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
                    members.push((key, node));
                }
            }
        }
    }

    fn refuse(&mut self, reason: Reason) {
        self.reason.get_or_insert(reason);
    }
}

/// The id of no anchor.
const NO_ANCHOR: usize = 0;

const ALIAS_UNKNOWN: Reason = "it has an alias of what is not well defined before it; quote a text that begins with an asterisk";
const ALIASES_TOO_LARGE: Reason = "its aliases stand for more than 1 MiB";
const TAG_UNKNOWN: Reason = "it has a tag that is not of YAML's core schema";
const KEY_NOT_A_TEXT: Reason = "it has a key that is not a text";
const KEY_TWICE: Reason = "it has a key twice in one mapping";
const MERGE_NOT_A_MAPPING: Reason = "a merge key stands before something that is not a mapping";
