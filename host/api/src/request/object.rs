//! Taking the members of a JSON body by name, so that each way in which it can be wrong has its own answer.

use std::collections::BTreeMap;

use keywright_core::Secret;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{compact, strict::Strict};

/// The members of a JSON object that are still to be taken. It borrows the body, so that no member is copied before it
/// is known what it is.
pub(crate) struct RequestObject<'a> {
    members: BTreeMap<String, &'a RawValue>,
}

/// Why a body was refused. The words are for the caller, and name members, never what they hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyRefused {
    /// It is not JSON, or of another kind than is expected.
    #[error(
        "the request body is not of the expected form: it must be a JSON object in which no member stands twice"
    )]
    Malformed,
    /// A member is of another kind than is expected.
    #[error("{member} must be {expected}")]
    MemberMalformed {
        /// The member's name.
        member: &'static str,
        /// What it must be, with its article.
        expected: &'static str,
    },
    /// A member that must be there is not.
    #[error("{0} is required")]
    MemberMissing(&'static str),
    /// It has a member that is not known here.
    #[error("the request has the unknown field {0}")]
    UnknownField(String),
}

impl<'a> RequestObject<'a> {
    /// Reads a body that must be a JSON object. Two members of one name are refused, at whatever depth.
    ///
    /// # Errors
    /// [`BodyRefused::Malformed`].
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, BodyRefused> {
        parse_json::<Strict>(body)?;
        Ok(Self {
            members: parse_json(body)?,
        })
    }

    /// Takes a member that is a text; null is absent.
    ///
    /// # Errors
    /// When it is of another kind.
    pub(crate) fn take_text(
        &mut self,
        member: &'static str,
    ) -> Result<Option<String>, BodyRefused> {
        self.take_parsed(member, "a string")
    }

    /// Takes a member that must be there, and is a text or null.
    ///
    /// # Errors
    /// When it is absent, or of another kind.
    pub(crate) fn take_present_text(
        &mut self,
        member: &'static str,
    ) -> Result<Option<String>, BodyRefused> {
        if !self.members.contains_key(member) {
            return Err(BodyRefused::MemberMissing(member));
        }
        self.take_parsed(member, "a string or null")
    }

    /// Takes a member that is a boolean, or one of the texts `"true"` and `"false"`.
    ///
    /// # Errors
    /// When it is of another kind; null is.
    pub(crate) fn take_boolean(
        &mut self,
        member: &'static str,
    ) -> Result<Option<bool>, BodyRefused> {
        let Some(json) = self.members.remove(member) else {
            return Ok(None);
        };
        match json.get() {
            "true" | r#""true""# => Ok(Some(true)),
            "false" | r#""false""# => Ok(Some(false)),
            _ => Err(BodyRefused::MemberMalformed {
                member,
                expected: "true or false",
            }),
        }
    }

    /// Takes a member that is an object with members of any name; null is absent.
    ///
    /// # Errors
    /// When it is of another kind.
    pub(crate) fn take_members(
        &mut self,
        member: &'static str,
    ) -> Result<Option<Map<String, Value>>, BodyRefused> {
        self.take_parsed(member, "an object")
    }

    /// Takes a member that is an object, to take its members in turn; null is absent.
    ///
    /// # Errors
    /// When it is of another kind.
    pub(crate) fn take_object(
        &mut self,
        member: &'static str,
    ) -> Result<Option<Self>, BodyRefused> {
        let members = self.take_parsed(member, "an object")?;
        Ok(members.map(|members| Self { members }))
    }

    /// Takes a member that is an array of texts; null is absent.
    ///
    /// # Errors
    /// When it is of another kind.
    pub(crate) fn take_texts(
        &mut self,
        member: &'static str,
    ) -> Result<Option<Vec<String>>, BodyRefused> {
        self.take_parsed(member, "an array of strings")
    }

    /// Takes a member that is an array of objects, to take the members of each in turn; null is absent.
    ///
    /// # Errors
    /// When it is of another kind.
    pub(crate) fn take_objects(
        &mut self,
        member: &'static str,
    ) -> Result<Option<Vec<Self>>, BodyRefused> {
        let objects: Option<Vec<_>> = self.take_parsed(member, "an array of objects")?;
        let objects = objects.map(|objects| objects.into_iter().map(|members| Self { members }));
        Ok(objects.map(Iterator::collect))
    }

    /// Takes a member of any kind; null is kept.
    ///
    /// # Errors
    /// When it can't be represented.
    pub(crate) fn take_json(&mut self, member: &'static str) -> Result<Value, BodyRefused> {
        let value = self.take_parsed(member, "JSON")?;
        Ok(value.unwrap_or(Value::Null))
    }

    /// Takes a member of any kind as its JSON text, with every number as it was written; null is absent.
    pub(crate) fn take_secret(&mut self, member: &'static str) -> Option<Secret> {
        let json = self.take(member)?;
        Some(Secret::new(compact(json.get())))
    }

    /// Ends the taking.
    ///
    /// # Errors
    /// [`BodyRefused::UnknownField`] with the first name, in alphabetical order, that was not taken.
    pub(crate) fn finish(self) -> Result<(), BodyRefused> {
        match self.members.into_keys().next() {
            Some(unknown) => Err(BodyRefused::UnknownField(told_field(&unknown))),
            None => Ok(()),
        }
    }

    fn take(&mut self, member: &'static str) -> Option<&'a RawValue> {
        self.members
            .remove(member)
            .filter(|json| json.get() != "null")
    }

    fn take_parsed<T: Deserialize<'a>>(
        &mut self,
        member: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, BodyRefused> {
        self.take(member)
            .map(|json| serde_json::from_str(json.get()))
            .transpose()
            .map_err(|_| BodyRefused::MemberMalformed { member, expected })
    }
}

/// Reads a body that must be a JSON object of any members. Returns its text without the blanks, and otherwise as it is.
///
/// # Errors
/// [`BodyRefused::Malformed`], also when an object in it names a member twice.
pub(crate) fn parse_document(body: &[u8]) -> Result<String, BodyRefused> {
    parse_json::<Strict>(body)?;
    let text = str::from_utf8(body).map_err(|_| BodyRefused::Malformed)?;
    let document = compact(text);
    if document.starts_with('{') {
        Ok(document)
    } else {
        Err(BodyRefused::Malformed)
    }
}

fn parse_json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, BodyRefused> {
    serde_json::from_slice(body).map_err(|_| BodyRefused::Malformed)
}

/// What is told back of the name of an unknown field: its beginning.
pub(crate) fn told_field(name: &str) -> String {
    name.chars().take(FIELD_CHARACTERS_MAX).collect()
}

/// How much of an unknown field's name is told back, in characters.
const FIELD_CHARACTERS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> RequestObject<'_> {
        RequestObject::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_no_object_is_malformed() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        for body in [
            "",
            " ",
            "null",
            "[]",
            "1",
            "\"a\"",
            "{",
            "{}x",
            "{\"a\":1,\"a\":2}",
            "{a:1}",
            "{\"a\":\"\\ud800\"}",
            "\u{feff}{}",
            &deep,
        ] {
            assert_eq!(
                RequestObject::parse(body.as_bytes()).err(),
                Some(BodyRefused::Malformed),
                "{body}"
            );
            assert!(parse_document(body.as_bytes()).is_err(), "{body}");
        }
        assert!(RequestObject::parse(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn members_of_the_wrong_kind_are_named() {
        let refused = object(r#"{"name":1}"#).take_text("name").unwrap_err();
        assert_eq!(refused.to_string(), "name must be a string");
        for json in [r#"{"p":[]}"#, r#"{"p":"x"}"#, r#"{"p":true}"#] {
            assert!(object(json).take_members("p").is_err(), "{json}");
            assert!(object(json).take_object("p").is_err(), "{json}");
        }
    }

    #[test]
    fn null_is_absent_but_no_boolean() {
        let mut absent = object(r#"{"a":null,"b":null,"c":null,"d":null}"#);
        assert_eq!(absent.take_text("a"), Ok(None));
        assert_eq!(absent.take_members("b"), Ok(None));
        assert!(absent.take_secret("c").is_none());
        assert_eq!(absent.take_json("d"), Ok(Value::Null));
        assert_eq!(absent.finish(), Ok(()));
        assert!(object(r#"{"a":null}"#).take_boolean("a").is_err());
    }

    #[test]
    fn arrays_hold_texts_alone_or_objects_alone() {
        let texts = object(r#"{"a":["b","c"]}"#).take_texts("a");
        assert_eq!(texts, Ok(Some(vec!["b".to_owned(), "c".to_owned()])));
        assert_eq!(object(r#"{"a":null}"#).take_texts("a"), Ok(None));
        let mut members = object(r#"{"a":[{"b":"c"},{}]}"#);
        let mut objects = members.take_objects("a").unwrap().unwrap();
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
    fn booleans_may_be_texts() {
        for (json, value) in [
            (r#"{"a":true}"#, Some(true)),
            (r#"{"a":"true"}"#, Some(true)),
            (r#"{"a":false}"#, Some(false)),
            (r#"{"a":"false"}"#, Some(false)),
            ("{}", None),
        ] {
            assert_eq!(object(json).take_boolean("a"), Ok(value), "{json}");
        }
        for json in [r#"{"a":"yes"}"#, r#"{"a":1}"#, r#"{"a":"True"}"#] {
            assert!(object(json).take_boolean("a").is_err(), "{json}");
        }
    }

    #[test]
    fn what_must_be_present_may_be_null_but_not_absent() {
        assert_eq!(object(r#"{"a":null}"#).take_present_text("a"), Ok(None));
        let text = object(r#"{"a":"b"}"#).take_present_text("a");
        assert_eq!(text, Ok(Some("b".to_owned())));
        let refused = object("{}").take_present_text("a").unwrap_err();
        assert_eq!(refused.to_string(), "a is required");
        assert!(object(r#"{"a":1}"#).take_present_text("a").is_err());
    }

    #[test]
    fn what_was_not_taken_is_unknown() {
        let mut request = object(r#"{"name":"a","z":1,"b":2}"#);
        request.take_text("name").unwrap();
        assert_eq!(
            request.finish(),
            Err(BodyRefused::UnknownField("b".to_owned()))
        );
    }

    #[test]
    fn a_long_unknown_name_is_told_in_part() {
        let json = format!(r#"{{"{}":1}}"#, "ä".repeat(FIELD_CHARACTERS_MAX + 1));
        let told = "ä".repeat(FIELD_CHARACTERS_MAX);
        assert_eq!(object(&json).finish(), Err(BodyRefused::UnknownField(told)));
    }

    #[test]
    fn a_value_keeps_its_numbers_and_loses_its_blanks() {
        let value = object("{\"value\": {\"n\": 12345678901234567890123, \"f\": 1.10}}")
            .take_secret("value")
            .unwrap();
        assert_eq!(value.expose(), r#"{"n":12345678901234567890123,"f":1.10}"#);
    }

    #[test]
    fn a_document_keeps_the_order_of_its_members() {
        let document = parse_document(br#"{"b": 1, "a": {"d": 1, "c": 2.50}}"#).unwrap();
        assert_eq!(document, r#"{"b":1,"a":{"d":1,"c":2.50}}"#);
    }
}
