use std::{borrow::Cow, cell::Cell, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

use crate::{DEPTH_MAX, JsonError, RESERVED_KEY_PREFIX, RESPONSE_DEPTH_MAX, shown_key, utf8};

/// A JSON text that was checked: valid, at most as deep as allowed, and without duplicate or reserved keys at any depth.
/// Each part of it has these properties too.
#[derive(Clone, Copy)]
pub struct Checked<'a>(&'a str);

/// A [`Checked`] text that owns its memory.
pub struct CheckedText(String);

impl CheckedText {
    /// Borrows the text.
    pub fn as_checked(&self) -> Checked<'_> {
        Checked(&self.0)
    }
}

/// Checks a document in one pass over its text.
///
/// # Errors
/// If the text is not JSON, is nested deeper than [`DEPTH_MAX`], or an object in it has a duplicate or a reserved key.
pub fn check(text: &str) -> Result<Checked<'_>, JsonError> {
    check_to(text, DEPTH_MAX)
}

/// Checks a response of this API, which may be nested up to [`RESPONSE_DEPTH_MAX`].
pub fn check_response(text: &str) -> Result<Checked<'_>, JsonError> {
    check_to(text, RESPONSE_DEPTH_MAX)
}

/// Checks a text and parses it.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, JsonError> {
    check(text)?.read()
}

/// Checks bytes, which must be UTF-8, and parses them.
pub fn read_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, JsonError> {
    read(utf8(bytes)?)
}

fn check_to(text: &str, depth_max: usize) -> Result<Checked<'_>, JsonError> {
    let fault = Cell::new(None);
    let checker = Checker {
        depth_max,
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
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, JsonError> {
        // The check has bounded the depth; the limit of serde_json is one level lower.
        let mut deserializer = serde_json::Deserializer::from_str(self.0);
        deserializer.disable_recursion_limit();
        Ok(T::deserialize(&mut deserializer)?)
    }

    /// Parses the text with a seed.
    pub fn read_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, JsonError> {
        let mut deserializer = serde_json::Deserializer::from_str(self.0);
        deserializer.disable_recursion_limit();
        Ok(seed.deserialize(&mut deserializer)?)
    }

    /// Returns the text without whitespace between its tokens.
    pub fn compact(self) -> CheckedText {
        CheckedText(crate::compact(self.0))
    }

    /// Returns the original text.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// Returns whether the text is an object.
    pub fn is_object(self) -> bool {
        self.0.trim_start().starts_with('{')
    }

    /// Returns whether the text is an array.
    pub fn is_array(self) -> bool {
        self.0.trim_start().starts_with('[')
    }

    /// Returns whether the text is a string.
    pub fn is_string(self) -> bool {
        self.0.trim_start().starts_with('"')
    }

    /// Returns the fields of an object in order.
    pub fn fields(self) -> Result<Vec<(String, Self)>, JsonError> {
        let fields = crate::fields(self.0)?.into_iter();
        Ok(fields
            .map(|(key, value)| (key, Self(value.get())))
            .collect())
    }

    /// Returns the items of an array in order.
    pub fn items(self) -> Result<Vec<Self>, JsonError> {
        let items = crate::items(self.0)?.into_iter();
        Ok(items.map(|item| Self(item.get())).collect())
    }

    /// Reads a boolean: `true` or `false`, also as a string in any casing, or the number 1 or 0. `None` for other JSON.
    pub fn boolean(self) -> Option<bool> {
        match self.text().trim() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ if self.is_string() => {
                let word = self.read::<String>().ok()?;
                let is = |expected: &str| word.eq_ignore_ascii_case(expected);
                is("true").then_some(true).or(is("false").then_some(false))
            }
            _ => None,
        }
    }

    /// Reads a signed 64-bit integer: a number without a fraction (`20` or `20.0`), or a string of digits. `None` for other
    /// JSON.
    pub fn whole_number(self) -> Option<i64> {
        if self.is_string() {
            return self.read::<String>().ok()?.parse().ok();
        }
        let text = self.text().trim();
        text.parse().ok().or_else(|| {
            let number: f64 = text.parse().ok()?;
            let is_whole = number.fract() == 0.0 && number.abs() < EXACT_BELOW;
            is_whole.then(|| format!("{number:.0}").parse().ok())?
        })
    }
}

/// Checks JSON without building a value.
#[derive(Clone, Copy)]
struct Checker<'f> {
    depth_max: usize,
    levels_left: usize,
    /// The cause of a failure, which a `serde_json` error can't carry.
    fault: &'f Cell<Option<JsonError>>,
}

impl Checker<'_> {
    fn refused<E: Error>(self, fault: JsonError) -> E {
        let error = E::custom(&fault);
        self.fault.set(Some(fault));
        error
    }

    fn one_level_down<E: Error>(self) -> Result<Self, E> {
        match self.levels_left.checked_sub(1) {
            Some(levels_left) => Ok(Self {
                levels_left,
                ..self
            }),
            None => Err(self.refused(JsonError::TooDeep(self.depth_max))),
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
            if let Some(key) = keys.replace(key) {
                let key = shown_key(&key).to_owned();
                return Err(self.refused(JsonError::DuplicateKey(key)));
            }
            fields.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// Deserializes a key and resolves its escapes. A key without escapes is borrowed from the text.
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

/// Whole numbers below this bound, 2⁵³, are exact in floating point.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use serde_json::{Value, value::RawValue};

    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}{}", "[".repeat(depth), "]".repeat(depth))
    }

    #[test]
    fn a_document_may_have_128_levels_and_a_response_more() {
        assert!(read::<Value>(&nested(DEPTH_MAX)).is_ok());
        assert!(check_response(&nested(RESPONSE_DEPTH_MAX)).is_ok());
        let too_deep = Some(JsonError::TooDeep(DEPTH_MAX));
        for depth in [DEPTH_MAX + 1, 10_000, 1_000_000] {
            assert_eq!(read::<Value>(&nested(depth)).err(), too_deep);
            let objects = r#"{"a":"#.repeat(depth);
            assert_eq!(check(&objects).err(), too_deep);
        }
        let deeper = nested(RESPONSE_DEPTH_MAX + 1);
        let too_deep = JsonError::TooDeep(RESPONSE_DEPTH_MAX);
        assert_eq!(check_response(&deeper).err(), Some(too_deep));
    }

    #[test]
    fn skipped_text_counts_as_depth_too() {
        let deep = nested(DEPTH_MAX + 1);
        let too_deep = Some(JsonError::TooDeep(DEPTH_MAX));
        assert_eq!(read::<&RawValue>(&deep).err(), too_deep);
    }

    #[test]
    fn each_fault_has_its_own_error() {
        let duplicate = |key: &str| Some(JsonError::DuplicateKey(key.to_owned()));
        let long = "a".repeat(65);
        let long = format!(r#"{{"{long}":1,"{long}":1}}"#);
        for (text, expected) in [
            (r#"{"a":1,"b":{"a":[null,true,-1,1.5,"a"]}}"#, None),
            (
                r#"{"$serde_json":{"private":"$serde_json::private::"}}"#,
                None,
            ),
            (r#"{"a":1,"a":1}"#, duplicate("a")),
            (r#"{"a":1,"\u0061":1}"#, duplicate("a")),
            (r#"[{"b":{"a":1,"a":2}}]"#, duplicate("a")),
            (r#"{"a b":1,"a b":1}"#, duplicate("(not shown)")),
            (long.as_str(), duplicate("(not shown)")),
            (
                r#"[{"$serde_json::private::RawValue":"1"}]"#,
                Some(JsonError::ReservedKey),
            ),
            (
                r#"{"\u0024serde_json::private::Raw\u0056alue":1}"#,
                Some(JsonError::ReservedKey),
            ),
            (
                r#"{"a":{"$serde_json::private::Number":"1"}}"#,
                Some(JsonError::ReservedKey),
            ),
            ("{", Some(JsonError::Truncated { line: 1, column: 1 })),
            ("{}x", Some(JsonError::Malformed { line: 1, column: 3 })),
            ("[1e999]", Some(JsonError::Malformed { line: 1, column: 6 })),
        ] {
            assert_eq!(check(text).err(), expected, "{text}");
        }
        for text in [
            "",
            " ",
            r#""\ud800""#,
            "\u{feff}{}",
            "{\"a\":\"\0\"}",
            "{a:1}",
            "[1,]",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
        assert_eq!(read_bytes::<Value>(b"\"\xff\""), Err(JsonError::NotUtf8));
    }

    #[test]
    fn a_wrong_type_is_reported_without_the_value() {
        let refused = read::<Vec<u8>>("[1,\n\"hunter2\"]").unwrap_err();
        assert_eq!(refused, JsonError::Mismatched { line: 2, column: 9 });
        assert!(!format!("{refused} {refused:?}").contains("hunter2"));
    }

    #[test]
    fn parts_of_a_checked_text_are_read_without_another_check() {
        let checked = check(r#" {"b": [1, 2.50], "a": "x"} "#).unwrap();
        assert!(checked.is_object());
        let fields = checked.fields().unwrap();
        assert_eq!(fields[0].0, "b");
        let items = fields[0].1.items().unwrap();
        assert_eq!(items[1].text(), "2.50");
        assert_eq!(fields[1].1.read::<String>().unwrap(), "x");
        assert!(fields[1].1.fields().is_err());
    }

    #[test]
    fn whole_numbers_may_have_a_fraction_of_zero_or_be_strings() {
        for (text, expected) in [
            ("20", Some(20)),
            ("20.0", Some(20)),
            ("-20.00", Some(-20)),
            ("2e1", Some(20)),
            ("0.0", Some(0)),
            (r#""20""#, Some(20)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9007199254740991.0", Some(9_007_199_254_740_991)),
            ("9007199254740992.0", None),
            ("9223372036854775808", None),
            ("20.5", None),
            (r#""20.0""#, None),
            (r#""""#, None),
            ("true", None),
            ("null", None),
            ("[20]", None),
        ] {
            assert_eq!(check(text).unwrap().whole_number(), expected, "{text}");
        }
    }
}
