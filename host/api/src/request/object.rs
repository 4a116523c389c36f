//! Takes the fields of a JSON body by name, with a specific error for each mistake.

use keywright_core::{Secret, credential::RequestedParameters};
use keywright_json::{Checked, DEPTH_MAX, JsonError, RESERVED_KEY_PREFIX};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The remaining fields of a JSON object. It borrows the body, so that fields are not copied before they are parsed.
pub(crate) struct RequestObject<'a> {
    fields: BTreeMap<String, Checked<'a>>,
}

/// A body is invalid. Messages are for the caller, and contain names of fields, but never values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// An object has a duplicate key.
    #[error("the request body has a duplicate key; remove all but one of the equal keys")]
    DuplicateKey,
    /// The body is not a JSON object.
    #[error("the request body is malformed; it must be a JSON object in UTF-8")]
    Malformed,
    /// A field has the wrong type.
    #[error("{field} must be {expected}")]
    FieldMalformed {
        field: &'static str,
        /// The expected type, with its article.
        expected: &'static str,
    },
    #[error("{0} is required")]
    FieldMissing(&'static str),
    /// The operations of a permission are missing, or have the wrong type.
    #[error("operations must be an array of strings")]
    OperationsMalformed,
    /// A key is reserved by the parser.
    #[error(
        "the request body has a reserved key; rename the key that starts with {RESERVED_KEY_PREFIX}"
    )]
    ReservedKey,
    /// Arrays and objects are nested too deep.
    #[error("the request body is nested too deep; at most {DEPTH_MAX} levels are allowed")]
    TooDeep,
    #[error("the request has the unknown field {0}")]
    UnknownField(String),
}

impl<'a> RequestObject<'a> {
    /// Parses a JSON object, with the checks of [`keywright_json::check`].
    ///
    /// # Errors
    /// The error of the check, or [`BodyError::Malformed`] if the body is not an object.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, BodyError> {
        Ok(Self::of(checked(body)?)?)
    }

    fn of(object: Checked<'a>) -> Result<Self, JsonError> {
        Ok(Self {
            fields: object.fields()?.into_iter().collect(),
        })
    }

    /// Takes a string field; null counts as absent.
    pub(crate) fn take_text(&mut self, field: &'static str) -> Result<Option<String>, BodyError> {
        self.take_parsed(field, "a string")
    }

    /// Takes a boolean field, parsed by [`Checked::boolean`]; null is an error.
    pub(crate) fn take_boolean(&mut self, field: &'static str) -> Result<Option<bool>, BodyError> {
        let Some(json) = self.fields.remove(field) else {
            return Ok(None);
        };
        let refused = BodyError::FieldMalformed {
            field,
            expected: "true or false",
        };
        json.boolean().map(Some).ok_or(refused)
    }

    /// Takes a boolean field like [`Self::take_boolean`], but null counts as absent.
    pub(crate) fn take_nullable_boolean(
        &mut self,
        field: &'static str,
    ) -> Result<Option<bool>, BodyError> {
        self.fields
            .retain(|name, json| name != field || json.text() != "null");
        self.take_boolean(field)
    }

    /// Takes an integer field, parsed by [`Checked::whole_number`]; null counts as absent.
    pub(crate) fn take_integer(&mut self, field: &'static str) -> Result<Option<i64>, BodyError> {
        let Some(json) = self.take(field) else {
            return Ok(None);
        };
        let refused = BodyError::FieldMalformed {
            field,
            expected: "a whole number",
        };
        json.whole_number().map(Some).ok_or(refused)
    }

    /// Takes an object of parameters; null counts as absent.
    pub(crate) fn take_parameters(
        &mut self,
        field: &'static str,
    ) -> Result<Option<RequestedParameters>, BodyError> {
        let Some(object) = self.take_object(field)? else {
            return Ok(None);
        };
        let parameters = object.fields.into_iter();
        let parameters = parameters.map(|(name, json)| (name, json.text().to_owned()));
        Ok(Some(parameters.collect()))
    }

    /// Takes an object field; null counts as absent.
    pub(crate) fn take_object(&mut self, field: &'static str) -> Result<Option<Self>, BodyError> {
        let object = self.take(field).map(Self::of).transpose();
        object.map_err(|_| BodyError::FieldMalformed {
            field,
            expected: "an object",
        })
    }

    /// Takes an array of strings; null counts as absent.
    pub(crate) fn take_texts(
        &mut self,
        field: &'static str,
    ) -> Result<Option<Vec<String>>, BodyError> {
        self.take_parsed(field, "an array of strings")
    }

    /// Takes an array of objects; null counts as absent.
    pub(crate) fn take_objects(
        &mut self,
        field: &'static str,
    ) -> Result<Option<Vec<Self>>, BodyError> {
        let Some(array) = self.take(field) else {
            return Ok(None);
        };
        let objects = array.items().and_then(|items| {
            let objects = items.into_iter().map(Self::of);
            objects.collect::<Result<_, _>>()
        });
        let objects = objects.map_err(|_| BodyError::FieldMalformed {
            field,
            expected: "an array of objects",
        })?;
        Ok(Some(objects))
    }

    /// Takes a field of any type. Returns null if it is null or absent.
    pub(crate) fn take_json(&mut self, field: &'static str) -> Result<Value, BodyError> {
        let value = self.take_parsed(field, "JSON")?;
        Ok(value.unwrap_or(Value::Null))
    }

    /// Takes a field of any type as its original JSON text; null counts as absent.
    pub(crate) fn take_json_text(&mut self, field: &'static str) -> Option<String> {
        self.take(field).map(|json| json.text().to_owned())
    }

    /// Takes a field of any type as JSON text, with numbers unchanged; null counts as absent.
    pub(crate) fn take_secret(&mut self, field: &'static str) -> Option<Secret> {
        let json = self.take(field)?;
        Some(Secret::new(compact(json.text())))
    }

    /// Checks that all fields were taken.
    ///
    /// # Errors
    /// [`BodyError::UnknownField`] with the first remaining name, in alphabetical order.
    pub(crate) fn finish(self) -> Result<(), BodyError> {
        match self.fields.into_keys().next() {
            Some(unknown) => Err(BodyError::UnknownField(truncated_name(&unknown))),
            None => Ok(()),
        }
    }

    fn take(&mut self, field: &'static str) -> Option<Checked<'a>> {
        self.fields
            .remove(field)
            .filter(|json| json.text() != "null")
    }

    fn take_parsed<T: Deserialize<'a>>(
        &mut self,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, BodyError> {
        self.take(field)
            .map(Checked::read)
            .transpose()
            .map_err(|_| BodyError::FieldMalformed { field, expected })
    }
}

/// Parses a JSON object with any fields. Returns its text without whitespace, otherwise unchanged.
pub(crate) fn parse_document(body: &[u8]) -> Result<String, BodyError> {
    let document = checked(body)?;
    if document.is_object() {
        Ok(compact(document.text()))
    } else {
        Err(BodyError::Malformed)
    }
}

fn checked(body: &[u8]) -> Result<Checked<'_>, BodyError> {
    Ok(keywright_json::check(keywright_json::utf8(body)?)?)
}

impl From<JsonError> for BodyError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::DuplicateKey => Self::DuplicateKey,
            JsonError::ReservedKey => Self::ReservedKey,
            JsonError::TooDeep => Self::TooDeep,
            JsonError::Malformed { .. }
            | JsonError::Mismatched { .. }
            | JsonError::NotUtf8
            | JsonError::Truncated { .. } => Self::Malformed,
        }
    }
}

/// Truncates the name of an unknown field for an error message.
pub(crate) fn truncated_name(name: &str) -> String {
    name.chars().take(FIELD_CHARACTERS_MAX).collect()
}

/// Removes whitespace between tokens; numbers and strings are unchanged.
pub(crate) fn compact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut is_in_string = false;
    let mut is_escaped = false;
    for character in json.chars() {
        if is_in_string {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => is_in_string = false,
                _ => {}
            }
        } else if character == '"' {
            is_in_string = true;
        } else if matches!(character, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        text.push(character);
    }
    text
}

/// Maximum length of an unknown field's name in an error message, in characters.
const FIELD_CHARACTERS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> RequestObject<'_> {
        RequestObject::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn bodies_other_than_objects_are_malformed() {
        for body in [
            "",
            " ",
            "null",
            "[]",
            "1",
            "\"a\"",
            "{",
            "{}x",
            "{a:1}",
            "{\"a\":\"\\ud800\"}",
            "\u{feff}{}",
        ] {
            assert_eq!(
                RequestObject::parse(body.as_bytes()).err(),
                Some(BodyError::Malformed),
                "{body}"
            );
            assert!(parse_document(body.as_bytes()).is_err(), "{body}");
        }
        assert!(RequestObject::parse(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn each_rule_for_bodies_has_its_own_error() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(RequestObject::parse(nested(DEPTH_MAX - 1).as_bytes()).is_ok());
        for (body, expected) in [
            (nested(DEPTH_MAX), BodyError::TooDeep),
            (
                r#"{"a":[{"b":1,"\u0062":2}]}"#.to_owned(),
                BodyError::DuplicateKey,
            ),
            (
                format!(r#"{{"a":{{"{RESERVED_KEY_PREFIX}RawValue":"1"}}}}"#),
                BodyError::ReservedKey,
            ),
        ] {
            let refused = RequestObject::parse(body.as_bytes()).err();
            assert_eq!(refused.as_ref(), Some(&expected));
            assert_eq!(parse_document(body.as_bytes()), Err(expected));
        }
    }

    #[test]
    fn errors_name_fields_of_the_wrong_type() {
        let refused = object(r#"{"name":1}"#).take_text("name").unwrap_err();
        assert_eq!(refused.to_string(), "name must be a string");
        for json in [r#"{"p":[]}"#, r#"{"p":"x"}"#, r#"{"p":true}"#] {
            assert!(object(json).take_parameters("p").is_err(), "{json}");
            assert!(object(json).take_object("p").is_err(), "{json}");
        }
    }

    #[test]
    fn null_counts_as_absent_except_for_booleans() {
        let mut absent = object(r#"{"a":null,"b":null,"c":null,"d":null}"#);
        assert_eq!(absent.take_text("a"), Ok(None));
        assert!(absent.take_parameters("b").unwrap().is_none());
        assert!(absent.take_secret("c").is_none());
        assert_eq!(absent.take_json("d"), Ok(Value::Null));
        assert_eq!(absent.finish(), Ok(()));
        assert!(object(r#"{"a":null}"#).take_boolean("a").is_err());
        let nullable = object(r#"{"a":null}"#).take_nullable_boolean("a");
        assert_eq!(nullable, Ok(None));
    }

    #[test]
    fn arrays_contain_only_strings_or_only_objects() {
        let texts = object(r#"{"a":["b","c"]}"#).take_texts("a");
        assert_eq!(texts, Ok(Some(vec!["b".to_owned(), "c".to_owned()])));
        assert_eq!(object(r#"{"a":null}"#).take_texts("a"), Ok(None));
        let mut fields = object(r#"{"a":[{"b":"c"},{}]}"#);
        let mut objects = fields.take_objects("a").unwrap().unwrap();
        assert_eq!(objects.len(), 2);
        assert_eq!(objects[0].take_text("b"), Ok(Some("c".to_owned())));
        for json in [
            r#"{"a":"b"}"#,
            r#"{"a":{}}"#,
            r#"{"a":[null]}"#,
            r#"{"a":[1]}"#,
        ] {
            assert!(object(json).take_texts("a").is_err(), "{json}");
            assert!(object(json).take_objects("a").is_err(), "{json}");
        }
    }

    #[test]
    fn booleans_may_be_strings() {
        for (json, value) in [
            (r#"{"a":true}"#, Some(true)),
            (r#"{"a":"True"}"#, Some(true)),
            (r#"{"a":false}"#, Some(false)),
            (r#"{"a":0}"#, Some(false)),
            ("{}", None),
        ] {
            assert_eq!(object(json).take_boolean("a"), Ok(value), "{json}");
        }
        for json in [r#"{"a":"yes"}"#, r#"{"a":2}"#] {
            assert!(object(json).take_boolean("a").is_err(), "{json}");
        }
    }

    #[test]
    fn integers_may_be_strings_or_have_a_zero_fraction() {
        for (json, value) in [
            (r#"{"a":20.0}"#, Some(20)),
            (r#"{"a":"20"}"#, Some(20)),
            (r#"{"a":null}"#, None),
            ("{}", None),
        ] {
            assert_eq!(object(json).take_integer("a"), Ok(value), "{json}");
        }
        let refused = object(r#"{"a":20.5}"#).take_integer("a").unwrap_err();
        assert_eq!(refused.to_string(), "a must be a whole number");
    }

    #[test]
    fn parameters_keep_their_original_text() {
        let parameters = object(r#"{"p": {"a": 1.50, "b": [ 1e3 ]}}"#).take_parameters("p");
        let parameters = parameters.unwrap().unwrap();
        let texts: Vec<_> = parameters.iter().collect();
        assert_eq!(texts, [("a", "1.50"), ("b", "[ 1e3 ]")]);
    }

    #[test]
    fn remaining_fields_are_unknown() {
        let mut request = object(r#"{"name":"a","z":1,"b":2}"#);
        request.take_text("name").unwrap();
        assert_eq!(
            request.finish(),
            Err(BodyError::UnknownField("b".to_owned()))
        );
    }

    #[test]
    fn a_long_unknown_name_is_truncated() {
        let json = format!(r#"{{"{}":1}}"#, "ä".repeat(FIELD_CHARACTERS_MAX + 1));
        let truncated = "ä".repeat(FIELD_CHARACTERS_MAX);
        assert_eq!(
            object(&json).finish(),
            Err(BodyError::UnknownField(truncated))
        );
    }

    #[test]
    fn a_value_keeps_its_numbers_but_not_its_whitespace() {
        let value = object("{\"value\": {\"n\": 12345678901234567890123, \"f\": 1.10}}")
            .take_secret("value")
            .unwrap();
        assert_eq!(value.expose(), r#"{"n":12345678901234567890123,"f":1.10}"#);
    }

    #[test]
    fn a_document_keeps_the_order_of_its_fields() {
        let document = parse_document(br#"{"b": 1, "a": {"d": 1, "c": 2.50}}"#).unwrap();
        assert_eq!(document, r#"{"b":1,"a":{"d":1,"c":2.50}}"#);
    }

    #[test]
    fn whitespace_is_removed_only_between_tokens() {
        for (json, compacted) in [
            (" { \"a b\" :\t[ 1 ,\r\n2 ] } ", r#"{"a b":[1,2]}"#),
            (r#"{ "a" : " \" \\" }"#, r#"{"a":" \" \\"}"#),
            (r#"[ "\\" , " ä " ]"#, r#"["\\"," ä "]"#),
            ("12345678901234567890.10", "12345678901234567890.10"),
        ] {
            assert_eq!(compact(json), compacted);
        }
    }
}
