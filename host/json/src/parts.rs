use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::JsonError;

/// Returns the text as raw JSON, without surrounding whitespace. Checks its syntax, but not its depth and keys.
///
/// # Errors
/// If it is not JSON.
pub fn raw(text: &str) -> Result<&RawValue, JsonError> {
    Ok(serde_json::from_str(text)?)
}

/// Returns the fields of an object in order, each value as its original text. Duplicate keys are all returned.
///
/// # Errors
/// If the text is not a JSON object.
pub fn fields(text: &str) -> Result<Vec<(String, &RawValue)>, JsonError> {
    let Fields(fields) = serde_json::from_str(text)?;
    Ok(fields)
}

/// Returns the items of an array, each as its original text.
///
/// # Errors
/// If the text is not a JSON array.
pub fn items(text: &str) -> Result<Vec<&RawValue>, JsonError> {
    Ok(serde_json::from_str(text)?)
}

/// Returns the unescaped text of a JSON string.
///
/// # Errors
/// If it is not a JSON string.
pub fn text(json: &str) -> Result<String, JsonError> {
    Ok(serde_json::from_str(json)?)
}

struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_split_at_one_level_only() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        let object = format!(r#"{{"a": {deep}, "$serde_json::private::RawValue": "1"}}"#);
        let fields = fields(&object).unwrap();
        assert_eq!(fields[0].1.get(), deep);
        assert_eq!(fields[1].1.get(), "\"1\"");
        assert_eq!(items(&deep).unwrap()[0].get().len(), deep.len() - 2);
        assert_eq!(raw(&format!(" {deep}\n")).unwrap().get(), deep);
        assert!(text(&deep).is_err() && text("null").is_err());
        assert_eq!(text(r#""\u0061""#).unwrap(), "a");
    }
}
