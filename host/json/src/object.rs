use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use crate::{DEPTH_MAX, JsonError, RESERVED_KEY_PREFIX, shown_key};

/// Reads an object with arbitrary fields from another format, such as TOML, and applies the rules of [`crate::check`]. Use it
/// with `#[serde(deserialize_with = "…")]`.
///
/// # Errors
/// If the value is not an object, is nested deeper than [`DEPTH_MAX`], or contains a duplicate key, a reserved key, or a
/// number or time that JSON can't represent.
pub fn deserialize_object<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    let value = Builder {
        levels_left: DEPTH_MAX,
    };
    match value.deserialize(deserializer)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(D::Error::custom("must be an object")),
    }
}

#[derive(Clone, Copy)]
struct Builder {
    levels_left: usize,
}

impl Builder {
    fn one_level_down<E: Error>(self) -> Result<Self, E> {
        let levels_left = self.levels_left.checked_sub(1);
        let levels_left = levels_left.ok_or_else(|| E::custom(JsonError::TooDeep(DEPTH_MAX)))?;
        Ok(Self { levels_left })
    }
}

impl<'de> DeserializeSeed<'de> for Builder {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Builder {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        let number = number.ok_or_else(|| E::custom("infinity and NaN are not allowed"))?;
        Ok(number.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.one_level_down()?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inner = self.one_level_down()?;
        let mut values = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            if key.starts_with(RESERVED_KEY_PREFIX) {
                return Err(A::Error::custom(JsonError::ReservedKey));
            }
            if key == TOML_TIME_KEY {
                return Err(A::Error::custom("dates and times must be strings"));
            }
            if values.contains_key(&key) {
                let key = shown_key(&key).to_owned();
                return Err(A::Error::custom(JsonError::DuplicateKey(key)));
            }
            values.insert(key, fields.next_value_seed(inner)?);
        }
        Ok(values.into())
    }
}

/// The key of the object by which the TOML library represents a date or a time.
const TOML_TIME_KEY: &str = "$__toml_private_datetime";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Map<String, Value>, String> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        deserializer.disable_recursion_limit();
        deserialize_object(&mut deserializer).map_err(|cause| cause.to_string())
    }

    #[test]
    fn the_rules_for_json_apply_to_types_of_other_formats() {
        let settings = read(r#"{"a":[1,-1,1.5,true,null,{"b":"c"}]}"#).unwrap();
        assert_eq!(settings["a"][5]["b"], "c");
        let deep = format!(r#"{{"a":{}"#, "[".repeat(DEPTH_MAX));
        for (json, words) in [
            (
                r#"{"a":{"$serde_json::private::RawValue":"1"}}"#,
                "reserved",
            ),
            (
                r#"{"a":{"$__toml_private_datetime":"1979-05-27"}}"#,
                "dates and times must be strings",
            ),
            (r#"{"a":1,"a":2}"#, "duplicate key `a`"),
            (&deep, "nested more than 128 levels deep"),
            ("[]", "must be an object"),
        ] {
            assert!(read(json).unwrap_err().contains(words), "{json}");
        }
    }
}
