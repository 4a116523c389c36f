//! Reading the JSON form.

use std::{
    cell::RefCell,
    fmt,
    io::{self, Read},
    ops::ControlFlow,
};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue};

use super::{
    FileRefused, Take,
    window::{Window, Windowed},
};
use crate::transfer::{
    entry::{Entry, EntryRefused, Place},
    node::Node,
};

pub(super) fn read(input: impl Read, take: Take<'_>) -> Result<(), FileRefused> {
    let window = Window::default();
    let mut deserializer =
        serde_json::Deserializer::from_reader(Windowed::new(input, window.clone()));
    let progress = RefCell::new(Progress::default());
    let document = Document(Shared {
        window: &window,
        progress: &progress,
        take: RefCell::new(take),
    });
    let done = deserializer
        .deserialize_map(document)
        .and_then(|()| deserializer.end());
    let progress = progress.into_inner();
    match done {
        _ if progress.was_broken_off => Ok(()),
        Err(cause) => Err(refused(cause, &window)),
        Ok(()) if progress.has_credentials => Ok(()),
        Ok(()) => Err(FileRefused::NoCredentials),
    }
}

/// The cause in words of this program: those of the parser may hold some of the content.
fn refused(cause: serde_json::Error, window: &Window) -> FileRefused {
    if window.is_exceeded() {
        return FileRefused::EntryTooLong;
    }
    let what = match cause.classify() {
        Category::Io => return FileRefused::Unreadable(io::Error::from(cause)),
        Category::Data => return FileRefused::NoCredentials,
        Category::Eof => "the JSON ends before its end",
        Category::Syntax => "this is not JSON",
    };
    FileRefused::Malformed {
        line: cause.line(),
        column: cause.column(),
        what: what.to_owned(),
    }
}

#[derive(Default)]
struct Progress {
    has_credentials: bool,
    was_broken_off: bool,
    entries: usize,
}

struct Shared<'a, 't> {
    window: &'a Window,
    progress: &'a RefCell<Progress>,
    take: RefCell<Take<'t>>,
}

/// The whole document: all members but `credentials` are passed over.
struct Document<'a, 't>(Shared<'a, 't>);

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(member) = members.next_key::<String>()? {
            if member != "credentials" {
                let IgnoredAny = members.next_value()?;
            } else if self.0.progress.borrow().has_credentials {
                return Err(A::Error::custom("credentials is there twice"));
            } else {
                self.0.progress.borrow_mut().has_credentials = true;
                members.next_value_seed(Credentials(&self.0))?;
            }
            self.0.window.reset();
        }
        Ok(())
    }
}

/// The list of credentials.
struct Credentials<'a, 's, 't>(&'s Shared<'a, 't>);

impl<'de> DeserializeSeed<'de> for Credentials<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Credentials<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let shared = self.0;
        shared.window.reset();
        while let Some(item) = items.next_element::<Box<RawValue>>()? {
            shared.window.reset();
            let place = {
                let mut progress = shared.progress.borrow_mut();
                progress.entries += 1;
                Place {
                    position: progress.entries,
                    line: None,
                }
            };
            let entry = entry_of(place, &item);
            let take = &mut *shared.take.borrow_mut();
            if let ControlFlow::Break(()) = take(entry) {
                shared.progress.borrow_mut().was_broken_off = true;
                return Err(A::Error::custom("no more is wanted"));
            }
        }
        Ok(())
    }
}

fn entry_of(place: Place, json: &RawValue) -> Result<Entry, EntryRefused> {
    let node = Node::from_json(json.get()).map_err(|reason| EntryRefused {
        place,
        name: None,
        reason: reason.to_owned(),
    })?;
    Entry::of(place, node)
}
