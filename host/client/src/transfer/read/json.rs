//! Reads the JSON format.

use std::{
    fmt,
    io::{self, Read},
};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue};

use super::input::{EntryReceiver, FileError, Window, Windowed};
use crate::transfer::{
    entry::{Entry, EntryError, Position},
    node::Node,
};

pub(super) fn read(input: impl Read, receive: EntryReceiver<'_>) -> Result<(), FileError> {
    let window = Window::default();
    let mut deserializer =
        serde_json::Deserializer::from_reader(Windowed::new(input, window.clone()));
    let mut reading = Reading {
        window: &window,
        receive,
        has_credentials: false,
        has_duplicate: false,
        was_stopped: false,
    };
    let done = deserializer
        .deserialize_map(Document(&mut reading))
        .and_then(|()| deserializer.end());
    match done {
        _ if reading.was_stopped => Ok(()),
        Err(cause) if reading.has_duplicate => Err(malformed(&cause, DUPLICATE)),
        Err(cause) => Err(refused(cause, &window)),
        Ok(()) if reading.has_credentials => Ok(()),
        Ok(()) => Err(FileError::NoCredentials),
    }
}

/// Converts a parser error. Omits the parser's message, because it may contain content of the file.
fn refused(cause: serde_json::Error, window: &Window) -> FileError {
    if window.is_exceeded() {
        return FileError::EntryTooLong;
    }
    match cause.classify() {
        Category::Io => FileError::Unreadable(io::Error::from(cause)),
        Category::Data => FileError::NoCredentials,
        Category::Eof => malformed(&cause, "unexpected end of file"),
        Category::Syntax => malformed(&cause, "invalid JSON"),
    }
}

fn malformed(cause: &serde_json::Error, reason: &str) -> FileError {
    FileError::Malformed {
        line: cause.line(),
        column: cause.column(),
        reason: reason.to_owned(),
    }
}

/// The state of reading a document.
struct Reading<'a> {
    window: &'a Window,
    receive: EntryReceiver<'a>,
    has_credentials: bool,
    /// Whether the key `credentials` occurs twice.
    has_duplicate: bool,
    was_stopped: bool,
}

/// The whole document. Keys other than `credentials` are ignored.
struct Document<'r, 'a>(&'r mut Reading<'a>);

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            if field != "credentials" {
                let IgnoredAny = fields.next_value()?;
            } else if self.0.has_credentials {
                self.0.has_duplicate = true;
                return Err(A::Error::custom(DUPLICATE));
            } else {
                self.0.has_credentials = true;
                fields.next_value_seed(Credentials(self.0))?;
            }
            self.0.window.reset();
        }
        Ok(())
    }
}

struct Credentials<'r, 'a>(&'r mut Reading<'a>);

impl<'de> DeserializeSeed<'de> for Credentials<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Credentials<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let reading = self.0;
        reading.window.reset();
        let mut entry = 0;
        while let Some(item) = items.next_element::<Box<RawValue>>()? {
            reading.window.reset();
            entry += 1;
            let position = Position { entry, line: None };
            if (reading.receive)(entry_of(position, &item)).is_break() {
                reading.was_stopped = true;
                return Err(A::Error::custom("stopped by the caller"));
            }
        }
        Ok(())
    }
}

fn entry_of(position: Position, json: &RawValue) -> Result<Entry, EntryError> {
    let node = Node::from_json(json.get()).map_err(|error| EntryError {
        position,
        name: None,
        reason: error.to_string(),
    })?;
    Entry::of(position, node)
}

const DUPLICATE: &str = "duplicate key `credentials`";
