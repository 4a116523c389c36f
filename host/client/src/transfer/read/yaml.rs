//! Reads the YAML format, building one entry at a time from parser events.
//!
//! Supports YAML 1.2 and two features of YAML 1.1 that files use: merge keys (`<<`) in block and flow mappings, and redefined
//! anchors.

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufRead, Read},
    ops::ControlFlow,
};

use granit_parser::{
    ErrorKind, Event, FallibleBufferedInput, InputIoError, Parser, ScalarStyle, Span, Tag,
};
use keywright_json::shown_key;
use zeroize::Zeroizing;

use super::input::{
    ANCHORS_BYTES_MAX, ENTRY_BYTES_MAX, EntryReceiver, FileError, Window, Windowed,
};
use crate::transfer::{
    entry::{Entry, EntryError, Position, with_leading_slash},
    node::{DEPTH_MAX, Node, Reason, Scalar, TOO_DEEP},
};

pub(super) fn read(input: impl Read, receive: EntryReceiver<'_>) -> Result<(), FileError> {
    let window = Window::default();
    let mut events = Events::new(input, window.clone());
    let mut builder = Builder::default();
    let mut has_credentials = false;
    if events.next_of_document()?.is_none() {
        return Err(FileError::NoCredentials);
    }
    match events.next()? {
        (Event::MappingStart(..), _) => {}
        _ => return Err(FileError::NoCredentials),
    }
    loop {
        window.reset();
        let (key, _) = events.next()?;
        if matches!(key, Event::MappingEnd) {
            break;
        }
        let is_credentials =
            matches!(&key, Event::Scalar(text, ..) if text.as_ref() == "credentials");
        // Other top-level keys only matter for their anchors.
        let _ = builder.build(&mut events, key)?;
        let (value, span) = events.next()?;
        if !is_credentials {
            let _ = builder.build(&mut events, value)?;
            continue;
        }
        if has_credentials {
            return Err(malformed(span, "duplicate key `credentials`"));
        }
        has_credentials = true;
        match value {
            Event::SequenceStart(..) => {
                if read_list(&mut events, &mut builder, &window, receive)?.is_break() {
                    return Ok(());
                }
            }
            value => {
                let (node, refused) = builder.build(&mut events, value)?;
                if refused.is_some() || !node.is_null() {
                    return Err(FileError::NoCredentials);
                }
            }
        }
    }
    if events.next_of_document()?.is_some() {
        return Err(FileError::SeveralDocuments);
    }
    if has_credentials {
        Ok(())
    } else {
        Err(FileError::NoCredentials)
    }
}

fn read_list<R: Read>(
    events: &mut Events<R>,
    builder: &mut Builder,
    window: &Window,
    receive: EntryReceiver<'_>,
) -> Result<ControlFlow<()>, FileError> {
    for entry in 1.. {
        window.reset();
        let (event, span) = events.next()?;
        if matches!(event, Event::SequenceEnd) {
            break;
        }
        let position = Position {
            entry,
            line: Some(span.start.line()),
        };
        let entry = match builder.build(events, event)? {
            (node, None) => Entry::of(position, node),
            (node, Some(reason)) => Err(EntryError {
                position,
                name: name_of(&node),
                reason,
            }),
        };
        if receive(entry).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn name_of(node: &Node) -> Option<String> {
    let Node::Mapping(fields) = node else {
        return None;
    };
    let (_, name) = fields.iter().find(|(field, _)| field == "name")?;
    name.text().map(with_leading_slash)
}

/// Builds nodes, and stores anchored nodes.
#[derive(Default)]
struct Builder {
    anchors: HashMap<usize, Anchored>,
    anchors_bytes: usize,
    /// The size of all expanded aliases in the current node.
    aliased_bytes: usize,
    /// The first error in the current node. The rest of the node is still read.
    reason: Option<String>,
}

/// A node with an anchor.
struct Anchored {
    node: Node,
    bytes: usize,
    depth: usize,
}

impl Builder {
    /// Builds the node that starts with this event. If the node is invalid, also returns why; the rest of the file can still
    /// be read.
    fn build<R: Read>(
        &mut self,
        events: &mut Events<R>,
        event: Event<'static>,
    ) -> Result<(Node, Option<String>), FileError> {
        self.aliased_bytes = 0;
        self.reason = None;
        let node = self.node(events, event, 0)?;
        Ok((node, self.reason.take()))
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
                "aliases expand to more than 1 MiB"
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
                self.refuse("a key is not a string");
                continue;
            };
            if !key.is_quoted && key.text.as_str() == "<<" {
                merged.push(value);
                continue;
            }
            if !keys.insert(key.text.to_string()) {
                let key = shown_key(&key.text);
                self.refuse(format!("duplicate key `{key}`"));
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
                self.refuse("a merge key has a value that is not a mapping");
                continue;
            };
            for (key, node) in added {
                if keys.insert(key.clone()) {
                    entries.push((key, node));
                }
            }
        }
    }

    fn refuse(&mut self, reason: impl Into<String>) {
        self.reason.get_or_insert_with(|| reason.into());
    }
}

/// The parser events of a file.
struct Events<R: Read> {
    parser: Parser<'static, FallibleBufferedInput<Characters<R>>>,
    window: Window,
}

impl<R: Read> Events<R> {
    fn new(input: R, window: Window) -> Self {
        let mut options = granit_parser::options! {
            emit_unresolved_aliases: true,
            flow_nesting_limit: DEPTH_MAX,
            block_nesting_limit: DEPTH_MAX + FRAME_DEPTH,
        };
        options.set_emit_comments(false);
        let characters = Characters {
            reader: Windowed::new(input, window.clone()),
        };
        Self {
            parser: Parser::new_from_fallible_iter_with_options(characters, options),
            window,
        }
    }

    fn next(&mut self) -> Result<(Event<'static>, Span), FileError> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(_)) if self.window.is_exceeded() => Err(FileError::EntryTooLong),
            Some(Err(cause)) => {
                let mark = *cause.marker();
                Err(refused(mark.line(), mark.col() + 1, cause.kind()))
            }
            // No caller reads past the end of the stream, so the parser ended too early. An error avoids an endless loop.
            None => Err(malformed(Span::default(), "unexpected end of file")),
        }
    }

    /// Skips to the start of the next document, if any.
    fn next_of_document(&mut self) -> Result<Option<()>, FileError> {
        loop {
            match self.next()?.0 {
                Event::DocumentStart(..) => return Ok(Some(())),
                Event::StreamEnd => return Ok(None),
                _ => {}
            }
        }
    }
}

fn malformed(span: Span, reason: &str) -> FileError {
    FileError::Malformed {
        line: span.start.line(),
        column: span.start.col() + 1,
        reason: reason.to_owned(),
    }
}

/// Converts a parser error to a message that does not contain content of the file.
fn refused(line: usize, column: usize, kind: &ErrorKind) -> FileError {
    let reason = match kind {
        ErrorKind::InputIo { error } => {
            return FileError::Unreadable(io::Error::other(error.message().to_owned()));
        }
        ErrorKind::UnexpectedCharacter { .. } => {
            "a value can't start with this character; quote the value".to_owned()
        }
        kind => kind.to_string(),
    };
    FileError::Malformed {
        line,
        column,
        reason,
    }
}

/// Decodes UTF-8.
struct Characters<R> {
    reader: Windowed<R>,
}

impl<R: Read> Characters<R> {
    fn read_character(&mut self) -> io::Result<Option<char>> {
        let mut bytes = Vec::new();
        while let Some(&byte) = self.reader.fill_buf()?.first() {
            self.reader.consume(1);
            if byte.is_ascii() && bytes.is_empty() {
                return Ok(Some(char::from(byte)));
            }
            bytes.push(byte);
            match str::from_utf8(&bytes) {
                Ok(text) => return Ok(text.chars().next()),
                Err(incomplete) if incomplete.error_len().is_none() => {}
                Err(_) => return Err(not_utf8()),
            }
        }
        if bytes.is_empty() {
            Ok(None)
        } else {
            Err(not_utf8())
        }
    }
}

impl<R: Read> Iterator for Characters<R> {
    type Item = Result<char, ErrorKind>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_character()
            .map_err(|error| ErrorKind::InputIo {
                error: InputIoError::from_io(error),
            })
            .transpose()
    }
}

fn not_utf8() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not UTF-8")
}

/// The nesting levels of the document, the list of credentials and an entry, plus one spare level.
const FRAME_DEPTH: usize = 4;

/// The id of nodes without an anchor.
const NO_ANCHOR: usize = 0;

const ALIAS_UNKNOWN: Reason =
    "an alias refers to an undefined or invalid anchor; quote strings that start with an asterisk";
const TAG_UNKNOWN: Reason = "a YAML tag is not supported; remove the tag";
