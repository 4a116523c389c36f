use std::{borrow::Cow, cell::Cell, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

use crate::{DEPTH_MAX, JsonError, RESERVED_KEY_PREFIX, RESPONSE_DEPTH_MAX, parts};

/// A JSON text that was checked: valid, at most as deep as allowed, and without duplicate or reserved keys at any depth.
/// Each part of it has these properties too.
#[derive(Clone, Copy)]
pub struct Checked<'a>(&'a str);

/// Checks a document in one pass over its text.
///
/// # Errors
/// If the text is not JSON, is nested deeper than [`DEPTH_MAX`], or an object in it has a duplicate or a reserved key.
pub fn check(text: &str) -> Result<Checked<'_>, JsonError> {
    check_to(text, DEPTH_MAX)
}

/// Checks a response of this API, which may be nested up to [`RESPONSE_DEPTH_MAX`].
///
/// # Errors
/// As [`check`].
pub fn check_response(text: &str) -> Result<Checked<'_>, JsonError> {
    check_to(text, RESPONSE_DEPTH_MAX)
}

fn check_to(text: &str, depth_max: usize) -> Result<Checked<'_>, JsonError> {
    let fault = Cell::new(None);
    let checker = Checker {
        levels_left: depth_max,
        fault: &fault,
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    match checker
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end())
    {
        Ok(()) => Ok(Checked(text)),
        Err(error) => Err(fault.take().unwrap_or_else(|| error.into())),
    }
}

impl<'a> Checked<'a> {
    /// Parses the text.
    ///
    /// # Errors
    /// If it does not fit the type.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, JsonError> {
        // The check has bounded the depth; the limit of serde_json is one level lower.
        let mut deserializer = serde_json::Deserializer::from_str(self.0);
        deserializer.disable_recursion_limit();
        Ok(T::deserialize(&mut deserializer)?)
    }

    /// Parses the text with a seed.
    ///
    /// # Errors
    /// If it does not fit the seed.
    pub fn read_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, JsonError> {
        let mut deserializer = serde_json::Deserializer::from_str(self.0);
        deserializer.disable_recursion_limit();
        Ok(seed.deserialize(&mut deserializer)?)
    }

    /// Returns the original text.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.0
    }

    /// Returns whether the text is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.0.trim_start().starts_with('{')
    }

    /// Returns whether the text is an array.
    #[must_use]
    pub fn is_array(self) -> bool {
        self.0.trim_start().starts_with('[')
    }

    /// Returns whether the text is a string.
    #[must_use]
    pub fn is_string(self) -> bool {
        self.0.trim_start().starts_with('"')
    }

    /// Returns the fields of an object in order.
    ///
    /// # Errors
    /// If it is not an object.
    pub fn fields(self) -> Result<Vec<(String, Self)>, JsonError> {
        let fields = parts::fields(self.0)?.into_iter();
        Ok(fields
            .map(|(key, value)| (key, Self(value.get())))
            .collect())
    }

    /// Returns the items of an array in order.
    ///
    /// # Errors
    /// If it is not an array.
    pub fn items(self) -> Result<Vec<Self>, JsonError> {
        let items = parts::items(self.0)?.into_iter();
        Ok(items.map(|item| Self(item.get())).collect())
    }
}

/// Checks JSON without building a value.
#[derive(Clone, Copy)]
struct Checker<'f> {
    levels_left: usize,
    /// The cause of a failure, which a `serde_json` error can't carry.
    fault: &'f Cell<Option<JsonError>>,
}

impl Checker<'_> {
    fn refused<E: Error>(self, fault: JsonError) -> E {
        self.fault.set(Some(fault));
        E::custom(fault)
    }

    fn one_level_down<E: Error>(self) -> Result<Self, E> {
        match self.levels_left.checked_sub(1) {
            Some(levels_left) => Ok(Self {
                levels_left,
                ..self
            }),
            None => Err(self.refused(JsonError::TooDeep)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Checker<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checker<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.one_level_down()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let inner = self.one_level_down()?;
        let mut keys = HashSet::new();
        while let Some(key) = fields.next_key_seed(Key)? {
            if key.starts_with(RESERVED_KEY_PREFIX) {
                return Err(self.refused(JsonError::ReservedKey));
            }
            if !keys.insert(key) {
                return Err(self.refused(JsonError::DuplicateKey));
            }
            fields.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// A key without its escapes, borrowed from the text if it has none.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }
}

#[cfg(test)]
mod tests;
