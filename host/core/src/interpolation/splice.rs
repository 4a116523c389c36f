//! Putting JSON texts into places of a JSON text. Everything else stays as it was written: numbers keep all their digits.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::ports::POINTER_SEGMENTS_MAX;

/// A place of a document is not there, or is filled twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceRefused;

/// What is to be put where.
#[derive(Default)]
pub(super) struct Fillings<'a> {
    root: Place<'a>,
}

#[derive(Default)]
struct Place<'a> {
    filling: Option<&'a str>,
    /// By the member's name, or the element's index.
    inside: BTreeMap<String, Place<'a>>,
}

impl<'a> Fillings<'a> {
    /// Puts a JSON text at a JSON Pointer (RFC 6901).
    ///
    /// # Errors
    /// When it is no pointer, or the place, one around it, or one inside it is filled already.
    pub(super) fn put(&mut self, pointer: &str, text: &'a str) -> Result<(), PlaceRefused> {
        // Places are built, filled and dropped by recursion.
        if pointer.matches('/').nth(POINTER_SEGMENTS_MAX).is_some() {
            return Err(PlaceRefused);
        }
        let mut place = &mut self.root;
        let mut tokens = pointer.split('/');
        if tokens.next() != Some("") {
            return Err(PlaceRefused);
        }
        for token in tokens {
            if place.filling.is_some() {
                return Err(PlaceRefused);
            }
            let token = token.replace("~1", "/").replace("~0", "~");
            place = place.inside.entry(token).or_default();
        }
        if place.filling.is_some() || !place.inside.is_empty() {
            return Err(PlaceRefused);
        }
        place.filling = Some(text);
        Ok(())
    }

    /// The document with everything put in.
    ///
    /// # Errors
    /// When the document has not every place.
    pub(super) fn fill(&self, document: &str) -> Result<String, PlaceRefused> {
        let mut filled = String::with_capacity(document.len());
        write(&mut filled, document, &self.root)?;
        Ok(filled)
    }
}

fn write(filled: &mut String, json: &str, place: &Place<'_>) -> Result<(), PlaceRefused> {
    if let Some(text) = place.filling {
        filled.push_str(text);
        return Ok(());
    }
    if place.inside.is_empty() {
        filled.push_str(json);
        return Ok(());
    }
    if json.trim_start().starts_with('{') {
        write_object(filled, json, place)
    } else {
        write_array(filled, json, place)
    }
}

fn write_object(filled: &mut String, json: &str, place: &Place<'_>) -> Result<(), PlaceRefused> {
    let Members(members) = serde_json::from_str(json).map_err(|_| PlaceRefused)?;
    let mut found = 0;
    filled.push('{');
    for (position, (name, value)) in members.iter().enumerate() {
        if position > 0 {
            filled.push(',');
        }
        filled.push_str(&serde_json::Value::from(name.as_str()).to_string());
        filled.push(':');
        match place.inside.get(name) {
            Some(inside) => {
                found += 1;
                write(filled, value.get(), inside)?;
            }
            None => filled.push_str(value.get()),
        }
    }
    filled.push('}');
    all_found(place, found)
}

fn write_array(filled: &mut String, json: &str, place: &Place<'_>) -> Result<(), PlaceRefused> {
    let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| PlaceRefused)?;
    let mut found = 0;
    filled.push('[');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            filled.push(',');
        }
        match place.inside.get(&index.to_string()) {
            Some(inside) => {
                found += 1;
                write(filled, element.get(), inside)?;
            }
            None => filled.push_str(element.get()),
        }
    }
    filled.push(']');
    all_found(place, found)
}

fn all_found(place: &Place<'_>, found: usize) -> Result<(), PlaceRefused> {
    if found == place.inside.len() {
        Ok(())
    } else {
        Err(PlaceRefused)
    }
}

/// The members of an object in their order, their values as they are written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spliced(document: &str, places: &[(&str, &str)]) -> Result<String, PlaceRefused> {
        let mut fillings = Fillings::default();
        for (pointer, text) in places {
            fillings.put(pointer, text)?;
        }
        fillings.fill(document)
    }

    #[test]
    fn what_is_not_filled_stays_as_it_was_written() {
        for (document, places, expected) in [
            ("{}", &[][..], "{}"),
            (
                r#"{"n": 123456789012345678901234567890, "a": [1.50, {"b": 1e400}]}"#,
                &[("/a/1/b", "12345678901234567890.10")],
                r#"{"n":123456789012345678901234567890,"a":[1.50,{"b":12345678901234567890.10}]}"#,
            ),
            (
                r#"{"a/b":{"~":1,"":2}}"#,
                &[("/a~1b/~0", "[]"), ("/a~1b/", "{}")],
                r#"{"a/b":{"~":[],"":{}}}"#,
            ),
            (r#"{"\u0061":0}"#, &[("/a", "1")], r#"{"a":1}"#),
            ("[0, 1]", &[("", r#""all""#)], r#""all""#),
        ] {
            assert_eq!(
                spliced(document, places).as_deref(),
                Ok(expected),
                "{document}"
            );
        }
    }

    #[test]
    fn a_pointer_of_more_segments_than_a_document_can_have_is_refused() {
        for (segments, expected) in [
            (POINTER_SEGMENTS_MAX, Ok(())),
            (POINTER_SEGMENTS_MAX + 1, Err(PlaceRefused)),
            (1_000_000, Err(PlaceRefused)),
        ] {
            let put = Fillings::default().put(&"/0".repeat(segments), "1");
            assert_eq!(put, expected, "{segments}");
        }
    }

    #[test]
    fn places_that_are_not_there_or_meet_are_refused() {
        for places in [
            &[("/b", "1")][..],
            &[("/a/2", "1")],
            &[("/a/00", "1")],
            &[("/a/-", "1")],
            &[("/a/0/x", "1")],
            &[("a", "1")],
            &[("/a", "1"), ("/a", "1")],
            &[("/a", "1"), ("/a/0", "1")],
            &[("/a/0", "1"), ("/a", "1")],
            &[("", "1"), ("/a", "1")],
        ] {
            assert_eq!(
                spliced(r#"{"a": [1, 2]}"#, places),
                Err(PlaceRefused),
                "{places:?}"
            );
        }
    }
}
