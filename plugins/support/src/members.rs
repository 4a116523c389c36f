use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Failure, Violation};

/// The members of a JSON object that a caller sent, taken out one by one, so that what is left over is unknown.
///
/// The host has converted scalars to the types that the schema of the parameters declares, so nothing is converted here.
#[derive(Debug)]
pub struct Members(Map<String, Value>);

impl Members {
    /// Reads a JSON object.
    ///
    /// # Errors
    ///
    /// The rule, when the text is no JSON object.
    pub fn parse(text: &str) -> Result<Self, Violation> {
        match serde_json::from_str(text) {
            Ok(Value::Object(members)) => Ok(Self(members)),
            _ => Err(Violation::of_whole("must be a JSON object")),
        }
    }

    /// Whether a member is there, be it null.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Takes a text; `None` when it is absent or null. An empty text is a text.
    ///
    /// # Errors
    ///
    /// The rule, when it is another kind of JSON.
    pub fn take_text(&mut self, name: &str) -> Result<Option<String>, Violation> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Violation::of(name, "must be a string")),
        }
    }

    /// Takes a text in which the empty string means that there is none.
    ///
    /// # Errors
    ///
    /// The rule, when it is another kind of JSON.
    pub fn take_filled_text(&mut self, name: &str) -> Result<Option<String>, Violation> {
        Ok(self.take_text(name)?.filter(|text| !text.is_empty()))
    }

    /// Takes a list of texts; empty when it is absent or null.
    ///
    /// # Errors
    ///
    /// The rule, when it is another kind of JSON.
    pub fn take_texts(&mut self, name: &str) -> Result<Vec<String>, Violation> {
        let not_texts = || Violation::of(name, "must be an array of strings");
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text),
                    _ => Err(not_texts()),
                })
                .collect(),
            Some(_) => Err(not_texts()),
        }
    }

    /// Takes a whole number; `None` when it is absent.
    ///
    /// # Errors
    ///
    /// The rule, when it is anything else, null included, or does not fit into 64 bits with a sign.
    pub fn take_integer(&mut self, name: &str) -> Result<Option<i64>, Violation> {
        let integer = match self.0.remove(name) {
            None => return Ok(None),
            Some(member) => member.as_i64(),
        };
        integer
            .map(Some)
            .ok_or_else(|| Violation::of(name, "must be a whole number"))
    }

    /// Takes a truth value; false when it is absent.
    ///
    /// # Errors
    ///
    /// The rule, when it is anything else, null included.
    pub fn take_flag(&mut self, name: &str) -> Result<bool, Violation> {
        match self.0.remove(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(Violation::of(name, "must be true or false")),
        }
    }

    /// Takes a member of any shape; `None` when it is absent or null.
    ///
    /// # Errors
    ///
    /// The rule, when it is not of that shape.
    pub fn take_shaped<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Violation> {
        let member = self.0.remove(name).unwrap_or_default();
        serde_json::from_value(member).map_err(|_| Violation::of(name, "is malformed"))
    }

    /// Drops a member that may be there and means nothing.
    pub fn ignore(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// The rule, naming the first member that nobody took.
    pub fn finish(self) -> Result<(), Violation> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Violation::of(name, "is not a known member")),
        }
    }
}

/// Checks the settings of a plugin that has none.
///
/// # Errors
///
/// [`Failure::Misconfigured`], naming the setting.
pub fn no_settings(settings: &str) -> Result<(), Failure> {
    let members = Members::parse(settings)
        .map_err(|_| Failure::Misconfigured("the settings must be a JSON object".to_owned()))?;
    match members.0.keys().next() {
        None => Ok(()),
        Some(name) => Err(Failure::Misconfigured(format!(
            "there is no setting `{name}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Members {
        Members::parse(text).unwrap()
    }

    #[test]
    fn scalars_are_taken_in_their_own_type() {
        let mut members = members(r#"{"a":8,"b":true,"c":false,"d":"8","e":"true"}"#);
        assert_eq!(members.take_integer("a"), Ok(Some(8)));
        assert_eq!(members.take_flag("b"), Ok(true));
        assert_eq!(members.take_flag("c"), Ok(false));
        assert!(members.take_integer("d").is_err() && members.take_flag("e").is_err());
        assert_eq!(members.finish(), Ok(()));
    }

    #[test]
    fn what_is_absent_has_no_value() {
        let mut members = members(r#"{"text":null,"texts":null,"empty":""}"#);
        assert_eq!(members.take_integer("absent"), Ok(None));
        assert_eq!(members.take_flag("absent"), Ok(false));
        assert_eq!(members.take_text("text"), Ok(None));
        assert_eq!(members.take_texts("texts"), Ok(Vec::new()));
        assert_eq!(members.take_filled_text("empty"), Ok(None));
    }

    #[test]
    fn another_kind_of_json_is_refused_with_the_members_name() {
        let text = r#"{"x":1.5,"y":null,"z":"yes","t":3,"l":[1],"m":{}}"#;
        let names = [
            members(text).take_integer("x").unwrap_err(),
            members(text).take_integer("y").unwrap_err(),
            members(text).take_flag("y").unwrap_err(),
            members(text).take_flag("z").unwrap_err(),
            members(text).take_text("t").unwrap_err(),
            members(text).take_texts("l").unwrap_err(),
            members(text).take_texts("m").unwrap_err(),
        ]
        .map(|violation| violation.member.unwrap());
        assert_eq!(names, ["x", "y", "y", "z", "t", "l", "m"]);
    }

    #[test]
    fn a_member_of_any_shape_is_taken_when_it_has_it() {
        let text = r#"{"pair":[1,"a"],"null":null}"#;
        assert_eq!(
            members(text).take_shaped("pair"),
            Ok(Some((1, "a".to_owned())))
        );
        assert_eq!(members(text).take_shaped::<bool>("null"), Ok(None));
        assert_eq!(members(text).take_shaped::<bool>("absent"), Ok(None));
        let violation = members(text).take_shaped::<bool>("pair").unwrap_err();
        assert_eq!(violation, Violation::of("pair", "is malformed"));
    }

    #[test]
    fn a_member_left_over_is_unknown() {
        let mut members = members(r#"{"known":1,"ignored":2,"colour":3}"#);
        members.take_integer("known").unwrap();
        members.ignore("ignored");
        assert_eq!(
            members.finish(),
            Err(Violation::of("colour", "is not a known member"))
        );
    }

    #[test]
    fn only_an_object_has_members() {
        for text in ["", "[]", "null", "\"x\"", "{", "{}{}"] {
            assert!(Members::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_unknown_setting_is_named() {
        assert_eq!(no_settings("{}"), Ok(()));
        let Err(Failure::Misconfigured(text)) = no_settings(r#"{"colour":"red"}"#) else {
            panic!("the setting was taken")
        };
        assert!(text.contains("`colour`"));
        assert!(matches!(no_settings("[]"), Err(Failure::Misconfigured(_))));
    }
}
