//! Putting JSON texts into places of a JSON text. Everything else stays as it was written: numbers keep all their digits.

use std::{collections::BTreeMap, fmt};

use keywright_json::DEPTH_MAX;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

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
    /// When it is no pointer, or has more than [`DEPTH_MAX`] segments, which no document has; or when the place, one around
    /// it, or one inside it is filled already.
    pub(super) fn put(&mut self, pointer: &str, text: &'a str) -> Result<(), PlaceRefused> {
        let mut place = &mut self.root;
        let mut tokens = pointer.split('/');
        if tokens.next() != Some("") {
            return Err(PlaceRefused);
        }
        for (depth, token) in tokens.enumerate() {
            if place.filling.is_some() || depth == DEPTH_MAX {
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

    /// The document with everything put in. One pass over the document, whatever the number and depth of the places.
    ///
    /// # Errors
    /// When the document has not every place, or breaks the rules of [`keywright_json::check`].
    pub(super) fn fill(&self, document: &str) -> Result<String, PlaceRefused> {
        let mut filled = String::with_capacity(document.len());
        keywright_json::check(document)
            .and_then(|document| document.read_seed(Filler::new(&self.root, &mut filled)))
            .map_err(|_| PlaceRefused)?;
        Ok(filled)
    }
}

/// Copies a part of the document, with what is put into it.
struct Filler<'s, 'a> {
    place: &'s Place<'a>,
    filled: &'s mut String,
    /// What precedes the part, if there is a part.
    prefix: &'static str,
}

impl<'s, 'a> Filler<'s, 'a> {
    fn new(place: &'s Place<'a>, filled: &'s mut String) -> Self {
        Self {
            place,
            filled,
            prefix: "",
        }
    }

    fn all_found<E: Error>(&self, found: usize) -> Result<(), E> {
        if found == self.place.inside.len() {
            Ok(())
        } else {
            Err(E::custom("a place is missing"))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Filler<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.filled.push_str(self.prefix);
        if let Some(text) = self.place.filling {
            IgnoredAny::deserialize(deserializer)?;
            self.filled.push_str(text);
        } else if self.place.inside.is_empty() {
            let kept = <&RawValue>::deserialize(deserializer)?;
            self.filled.push_str(kept.get());
        } else {
            deserializer.deserialize_any(self)?;
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Filler<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let untouched = Place::default();
        let mut found = 0;
        let mut prefix = "";
        self.filled.push('{');
        while let Some(key) = fields.next_key::<String>()? {
            self.filled.push_str(prefix);
            prefix = ",";
            self.filled
                .push_str(&serde_json::Value::from(key.as_str()).to_string());
            self.filled.push(':');
            let place = self.place.inside.get(&key);
            found += usize::from(place.is_some());
            let place = place.unwrap_or(&untouched);
            fields.next_value_seed(Filler::new(place, self.filled))?;
        }
        self.filled.push('}');
        self.all_found(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let untouched = Place::default();
        let mut found = 0;
        self.filled.push('[');
        for index in 0_usize.. {
            let place = self.place.inside.get(&index.to_string());
            let filler = Filler {
                place: place.unwrap_or(&untouched),
                filled: self.filled,
                prefix: if index > 0 { "," } else { "" },
            };
            if items.next_element_seed(filler)?.is_none() {
                break;
            }
            found += usize::from(place.is_some());
        }
        self.filled.push(']');
        self.all_found(found)
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
                r#"{"n": 123456789012345678901234567890, "a": [1.50, {"b": 1e300}]}"#,
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
    fn a_place_is_found_at_any_depth_that_a_document_has_and_refused_beyond() {
        let nested = |levels: usize, inner: &str| {
            format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels))
        };
        let deepest = "/0".repeat(DEPTH_MAX);
        let document = nested(DEPTH_MAX, "1");
        let expected = nested(DEPTH_MAX, "2");
        assert_eq!(spliced(&document, &[(&deepest, "2")]), Ok(expected));
        for segments in [DEPTH_MAX + 1, 1_000_000] {
            let pointer = "/0".repeat(segments);
            let refused = spliced(&document, &[(&pointer, "2")]);
            assert_eq!(refused, Err(PlaceRefused), "{segments}");
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
