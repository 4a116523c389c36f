//! Deserializes JSON bodies, with a specific error for each mistake.
//!
//! [`StrictJson`] reads a body into a type with derived `Deserialize`, whose schema is in the API description. Fields are read in
//! the order in which the type declares them, then unknown fields are reported in alphabetical order, and then missing fields. If
//! the rules of a body can't be derived, its handler takes the fields of a [`RequestObject`].

use std::{borrow::Cow, collections::BTreeMap, fmt::Display, mem, slice, sync::Arc};

use axum::extract::{FromRequest, OptionalFromRequest, Request};
use keywright_core::{
    Secret, UseCaseError,
    credential::{self, METADATA_CHARACTERS_MAX, MetadataError, RequestedParameters},
};
use keywright_json::{Checked, CheckedText, JsonError, compact};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, Visitor, value::StrDeserializer},
    forward_to_deserialize_any,
};
use serde_json::value::RawValue;

use super::{check_is_json, read_body, read_json_body};
use crate::{Api, response::ApiError};

/// A request body: a JSON object that passes the checks of [`keywright_json::check`] and has no unknown fields.
#[derive(Default)]
pub(crate) struct StrictJson<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Api>> for StrictJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        let body = read_json_body(request, &api.limits).await?;
        Ok(Self(RequestObject::parse(&body)?.read()?))
    }
}

/// An empty body counts as absent, whatever its media type.
impl<T: DeserializeOwned> OptionalFromRequest<Arc<Api>> for StrictJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Option<Self>, ApiError> {
        let is_json = check_is_json(request.headers());
        let body = read_body(request, &api.limits).await?;
        if body.is_empty() {
            return Ok(None);
        }
        is_json?;
        Ok(Some(Self(RequestObject::parse(&body)?.read()?)))
    }
}

/// A body is invalid. Messages are for the caller, and contain names of fields, but never values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// The body has a duplicate or reserved key, or is nested too deep.
    #[error("the request body is invalid: {0}")]
    Json(JsonError),
    /// The body is not a JSON object.
    #[error("the request body is malformed; it must be a JSON object in UTF-8")]
    Malformed,
    /// A field has the wrong type.
    #[error("{field} must be {expected}")]
    FieldMalformed {
        field: &'static str,
        /// The expected type, with its article.
        expected: Cow<'static, str>,
    },
    #[error("{0} is required")]
    FieldMissing(&'static str),
    /// A value has the wrong type. The object that contains it adds the name of the field.
    #[error("a field must be {0}")]
    Mismatched(Cow<'static, str>),
    #[error("the request has the unknown field {0}")]
    UnknownField(String),
}

impl BodyError {
    /// Creates the error for a field that must be `expected`: a type, with its article.
    pub(crate) fn field(field: &'static str, expected: impl Into<Cow<'static, str>>) -> Self {
        Self::FieldMalformed {
            field,
            expected: expected.into(),
        }
    }

    fn in_field(self, field: &'static str) -> Self {
        match self {
            Self::Mismatched(expected) => Self::field(field, expected),
            Self::UnknownField(name) => Self::UnknownField(format!("{field}.{name}")),
            error => error,
        }
    }
}

/// If a type implements `Deserialize` itself, the messages of its errors are the expected type, with its article.
impl Error for BodyError {
    fn custom<T: Display>(expected: T) -> Self {
        Self::Mismatched(expected.to_string().into())
    }

    fn missing_field(field: &'static str) -> Self {
        Self::FieldMissing(field)
    }
}

impl From<JsonError> for BodyError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::DuplicateKey(_) | JsonError::ReservedKey | JsonError::TooDeep(_) => {
                Self::Json(error)
            }
            JsonError::Malformed { .. }
            | JsonError::Mismatched { .. }
            | JsonError::NotUtf8
            | JsonError::Truncated { .. } => Self::Malformed,
        }
    }
}

/// The remaining fields of a JSON object. It borrows the body, so that fields are not copied before they are parsed.
pub(crate) struct RequestObject<'a> {
    fields: BTreeMap<String, Checked<'a>>,
}

impl<'a> RequestObject<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, BodyError> {
        Self::of(checked(body)?)
    }

    fn of(object: Checked<'a>) -> Result<Self, BodyError> {
        Ok(Self {
            fields: object.fields()?.into_iter().collect(),
        })
    }

    pub(crate) fn read<T: Deserialize<'a>>(self) -> Result<T, BodyError> {
        T::deserialize(self)
    }

    /// Takes a field; null counts as absent.
    pub(crate) fn take<T: Deserialize<'a>>(
        &mut self,
        field: &'static str,
    ) -> Result<Option<T>, BodyError> {
        self.take_present(field).map(Option::flatten)
    }

    /// Takes a field, whose type determines whether it may be null.
    pub(crate) fn take_present<T: Deserialize<'a>>(
        &mut self,
        field: &'static str,
    ) -> Result<Option<T>, BodyError> {
        let json = self.fields.remove(field).map(Field);
        json.map(T::deserialize)
            .transpose()
            .map_err(|error| error.in_field(field))
    }

    /// Takes the parameters of a credential, each as its original text.
    pub(crate) fn take_parameters(&mut self) -> Result<Option<RequestedParameters>, BodyError> {
        let parameters: Option<BTreeMap<String, &RawValue>> = self.take("parameters")?;
        Ok(parameters.map(|parameters| {
            let parameters = parameters.into_iter();
            parameters
                .map(|(name, json)| (name, json.get().to_owned()))
                .collect()
        }))
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
}

impl<'de> Deserializer<'de> for RequestObject<'de> {
    type Error = BodyError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, BodyError> {
        Err(BodyError::Malformed)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        visitor.visit_map(InOrder {
            object: self,
            names: names.iter(),
            value: None,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

/// The fields of an object, in the order in which a type declares them.
struct InOrder<'a> {
    object: RequestObject<'a>,
    names: slice::Iter<'static, &'static str>,
    value: Option<(&'static str, Checked<'a>)>,
}

impl<'de> MapAccess<'de> for InOrder<'de> {
    type Error = BodyError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, BodyError> {
        let fields = &mut self.object.fields;
        self.value = self
            .names
            .find_map(|name| Some((*name, fields.remove(*name)?)));
        match self.value {
            Some((name, _)) => seed.deserialize(StrDeserializer::new(name)).map(Some),
            None => RequestObject {
                fields: mem::take(fields),
            }
            .finish()
            .map(|()| None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, BodyError> {
        let (name, json) = self.value.take().ok_or(BodyError::Malformed)?;
        seed.deserialize(Field(json))
            .map_err(|error| error.in_field(name))
    }
}

/// The value of a field. A boolean is read by [`Checked::boolean`], and an integer by [`Checked::whole_number`].
struct Field<'a>(Checked<'a>);

impl<'de> Field<'de> {
    fn read<V: Visitor<'de>>(
        self,
        visitor: V,
        newtype: Option<&'static str>,
        expected: &'static str,
    ) -> Result<V::Value, BodyError> {
        self.0
            .read_seed(Visited { visitor, newtype })
            .map_err(|_| BodyError::Mismatched(expected.into()))
    }
}

impl<'de> Deserializer<'de> for Field<'de> {
    type Error = BodyError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        self.read(visitor, None, "JSON")
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        match self.0.boolean() {
            Some(boolean) => visitor.visit_bool(boolean),
            None => Err(BodyError::Mismatched("true or false".into())),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        match self.0.whole_number() {
            Some(number) => visitor.visit_i64(number),
            None => Err(BodyError::Mismatched(
                "a whole number of at most 64 bits".into(),
            )),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        self.read(visitor, None, "a string")
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        if self.0.text() == "null" {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        self.read(visitor, Some(name), "JSON")
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, BodyError> {
        self.read(visitor, None, "an object")
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, BodyError> {
        RequestObject::of(self.0)
            .map_err(|_| BodyError::Mismatched("an object".into()))?
            .deserialize_struct(name, names, visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 u8 u16 u32 u64 f32 f64 char str bytes byte_buf unit unit_struct seq tuple tuple_struct enum identifier
        ignored_any
    }
}

/// Passes a visitor to the deserializer of a text.
struct Visited<V> {
    visitor: V,
    /// The name of the newtype that the visitor is for, if any: [`RawValue`] is one.
    newtype: Option<&'static str>,
}

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Visited<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        match self.newtype {
            Some(name) => deserializer.deserialize_newtype_struct(name, self.visitor),
            None => deserializer.deserialize_any(self.visitor),
        }
    }
}

/// Any JSON, as its text without whitespace; numbers are unchanged.
pub(crate) struct JsonText(Secret);

impl JsonText {
    pub(crate) fn required_value(value: Option<Self>) -> Result<Secret, UseCaseError> {
        value
            .map(|Self(value)| value)
            .ok_or_else(|| UseCaseError::ValueRefused("value is required".to_owned()))
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(Secret::new(compact(json.get()))))
    }
}

/// The metadata in a request, if any; its length is not checked yet.
#[derive(Default)]
pub(crate) struct Metadata(Option<JsonText>);

impl Metadata {
    pub(crate) fn parse(self) -> Result<Option<credential::Metadata>, MetadataError> {
        let parse = |JsonText(json)| credential::Metadata::parse(json);
        self.0.map(parse).transpose()
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Metadata {
    fn schema_name() -> Cow<'static, str> {
        "Metadata".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": format!("Any JSON of at most {METADATA_CHARACTERS_MAX} characters, stored with this version only; null for no metadata."),
        })
    }
}

/// Parses a JSON object with any fields. Returns its text without whitespace, otherwise unchanged.
pub(crate) fn parse_document(body: &[u8]) -> Result<CheckedText, BodyError> {
    let document = checked(body)?;
    if document.is_object() {
        Ok(document.compact())
    } else {
        Err(BodyError::Malformed)
    }
}

fn checked(body: &[u8]) -> Result<Checked<'_>, BodyError> {
    Ok(keywright_json::check(keywright_json::utf8(body)?)?)
}

pub(crate) fn truncated_name(name: &str) -> String {
    name.chars().take(FIELD_CHARACTERS_MAX).collect()
}

/// Maximum length of an unknown field's name in an error message, in characters.
const FIELD_CHARACTERS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Fields {
        z: Option<String>,
        flag: bool,
        number: Option<i64>,
        texts: Option<Vec<String>>,
        inner: Option<Inner>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        a: String,
    }

    fn object(json: &str) -> RequestObject<'_> {
        RequestObject::parse(json.as_bytes()).unwrap()
    }

    fn read(json: &str) -> Result<Fields, BodyError> {
        object(json).read()
    }

    fn error(json: &str) -> String {
        read(json).unwrap_err().to_string()
    }

    #[test]
    fn each_type_has_its_own_error() {
        for (json, expected) in [
            (r#"{"z":1}"#, "z must be a string"),
            (r#"{"flag":null}"#, "flag must be true or false"),
            (r#"{"flag":2}"#, "flag must be true or false"),
            (r#"{"flag":"yes"}"#, "flag must be true or false"),
            (
                r#"{"number":20.5}"#,
                "number must be a whole number of at most 64 bits",
            ),
            (r#"{"inner":[]}"#, "inner must be an object"),
            (r#"{"inner":{"a":[]}}"#, "a must be a string"),
            (r#"{"inner":{}}"#, "a is required"),
            (
                r#"{"inner":{"b":1}}"#,
                "the request has the unknown field inner.b",
            ),
        ] {
            assert_eq!(error(json), expected, "{json}");
        }
        for json in [
            r#"{"texts":"b"}"#,
            r#"{"texts":[null]}"#,
            r#"{"texts":[1]}"#,
        ] {
            assert!(read(json).is_err(), "{json}");
        }
        for json in [r#"{"p":[]}"#, r#"{"p":"x"}"#, r#"{"p":true}"#] {
            let taken = object(json).take::<BTreeMap<String, Value>>("p");
            assert_eq!(taken, Err(BodyError::field("p", "an object")), "{json}");
        }
    }

    #[test]
    fn errors_are_in_the_order_of_the_declared_fields() {
        for (json, expected) in [
            (r#"{"b":1,"number":"x","z":1}"#, "z must be a string"),
            (
                r#"{"b":1,"number":"x"}"#,
                "number must be a whole number of at most 64 bits",
            ),
            (
                r#"{"b":1,"inner":null,"a":2}"#,
                "the request has the unknown field a",
            ),
        ] {
            assert_eq!(error(json), expected, "{json}");
        }
        let missing = object(r#"{"b":1}"#).read::<Inner>().unwrap_err();
        assert_eq!(missing, BodyError::UnknownField("b".to_owned()));
        let mut taken = object(r#"{"name":"a","z":1,"b":2}"#);
        assert_eq!(taken.take("name"), Ok(Some("a".to_owned())));
        assert_eq!(taken.finish(), Err(BodyError::UnknownField("b".to_owned())));
    }

    #[test]
    fn a_long_unknown_name_is_truncated() {
        let json = format!(r#"{{"{}":1}}"#, "ä".repeat(FIELD_CHARACTERS_MAX + 1));
        let truncated = "ä".repeat(FIELD_CHARACTERS_MAX);
        assert_eq!(read(&json), Err(BodyError::UnknownField(truncated)));
    }
}
