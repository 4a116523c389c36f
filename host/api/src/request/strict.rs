//! JSON that means one thing only.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// A JSON object, if it is one in which no object has two members of one name, at whatever depth.
pub(crate) fn parse_strict_object(json: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice::<Strict>(json).ok()?;
    serde_json::from_slice(json).ok()
}

/// Any JSON in which no object has two members of one name, at whatever depth, and no more than 128 levels stand inside
/// each other. It is read to be checked: nothing of it is kept.
///
/// Readers differ in which of two members they take, so a document with both would be checked as one thing here and
/// could be used as another elsewhere.
pub(super) struct Strict;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_str<E>(self, _: &str) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Strict, A::Error> {
        while elements.next_element::<Strict>()?.is_some() {}
        Ok(Strict)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Strict, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a member stands twice"));
            }
            members.next_value::<Strict>()?;
        }
        Ok(Strict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_one_name_are_refused_at_any_depth() {
        for (json, is_strict) in [
            (r#"{"a":1,"b":{"a":[null,true,-1,1.5,"a"]}}"#, true),
            (r#"{"a":1,"a":1}"#, false),
            (r#"{"a":1,"\u0061":1}"#, false),
            (r#"[{"b":{"a":1,"a":2}}]"#, false),
        ] {
            assert_eq!(
                serde_json::from_str::<Strict>(json).is_ok(),
                is_strict,
                "{json}"
            );
        }
    }

    #[test]
    fn too_deep_a_nesting_is_refused() {
        for (depth, is_strict) in [(127, true), (128, false), (100_000, false)] {
            let json = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(
                serde_json::from_str::<Strict>(&json).is_ok(),
                is_strict,
                "{depth}"
            );
        }
    }
}
