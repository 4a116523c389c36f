//! Reads the YAML format, building one entry at a time from parser events.
//!
//! Supports YAML 1.2 and two features of YAML 1.1 that files use: merge keys (`<<`) in block and flow mappings, and redefined
//! anchors.

use std::{
    io::{self, BufRead, Read},
    ops::ControlFlow,
};

use granit_parser::{ErrorKind, Event, FallibleBufferedInput, InputIoError, Parser, Span};

use super::{
    FileError, Take,
    window::{Window, Windowed},
    yaml_node::Builder,
};
use crate::transfer::{
    entry::{Entry, EntryError, Position},
    node::{DEPTH_MAX, Node},
};

pub(super) fn read(input: impl Read, take: Take<'_>) -> Result<(), FileError> {
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
                if read_list(&mut events, &mut builder, &window, take)?.is_break() {
                    return Ok(());
                }
            }
            value => {
                if !builder
                    .build(&mut events, value)?
                    .is_ok_and(|node| node.is_null())
                {
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
    take: Take<'_>,
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
            Ok(node) => Entry::of(position, node),
            Err(refused) => Err(EntryError {
                position,
                name: refused.node.as_ref().and_then(name_of),
                reason: refused.reason.to_owned(),
            }),
        };
        if take(entry).is_break() {
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
    name.text().map(crate::transfer::entry::with_leading_slash)
}

/// The parser events of a file.
pub(super) struct Events<R: Read> {
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
        let characters = Characters::new(Windowed::new(input, window.clone()));
        Self {
            parser: Parser::new_from_fallible_iter_with_options(characters, options),
            window,
        }
    }

    pub(super) fn next(&mut self) -> Result<(Event<'static>, Span), FileError> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(_)) if self.window.is_exceeded() => Err(FileError::EntryTooLong),
            Some(Err(cause)) => {
                let mark = *cause.marker();
                Err(refused(mark.line(), mark.col() + 1, cause.kind()))
            }
            // No caller reads past the end of the stream, so the parser ended early. Failing avoids an endless loop.
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

fn malformed(span: Span, what: &str) -> FileError {
    FileError::Malformed {
        line: span.start.line(),
        column: span.start.col() + 1,
        what: what.to_owned(),
    }
}

/// Converts a parser error, without content of the file.
fn refused(line: usize, column: usize, kind: &ErrorKind) -> FileError {
    let what = match kind {
        ErrorKind::InputIo { error } => {
            return FileError::Unreadable(io::Error::other(error.message().to_owned()));
        }
        ErrorKind::UnexpectedCharacter { .. } => {
            "a value can't start with this character; quote the value".to_owned()
        }
        kind => kind.to_string(),
    };
    FileError::Malformed { line, column, what }
}

/// Decodes UTF-8.
struct Characters<R> {
    reader: Windowed<R>,
}

impl<R: Read> Characters<R> {
    fn new(reader: Windowed<R>) -> Self {
        Self { reader }
    }

    fn read_character(&mut self) -> io::Result<Option<char>> {
        let Some(&first) = self.reader.fill_buf()?.first() else {
            return Ok(None);
        };
        self.reader.consume(1);
        let following = match first {
            0x00..=0x7f => return Ok(Some(char::from(first))),
            0xc2..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => return Err(not_utf8()),
        };
        let mut bytes = [first, 0, 0, 0];
        for byte in bytes.iter_mut().skip(1).take(following) {
            let next = self.reader.fill_buf()?.first();
            *byte = *next.ok_or_else(not_utf8)?;
            self.reader.consume(1);
        }
        let text = str::from_utf8(bytes.get(..=following).unwrap_or_default());
        match text.map_err(|_| not_utf8())?.chars().next() {
            Some(character) => Ok(Some(character)),
            None => Err(not_utf8()),
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

/// The depth of the document, the list of credentials and an entry, with one to spare.
const FRAME_DEPTH: usize = 4;
