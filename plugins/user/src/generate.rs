//! The plugin's functions, independent of WIT.

use keywright_plugin_support::{
    Failure, Fields, Generator, PASSWORD_BYTES_MAX, PasswordRules, Recovered, Violation, canonical,
    password_hash, to_json,
};
use rand::seq::IndexedRandom;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// The canonical parameters of a user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parameters {
    #[serde(flatten)]
    rules: PasswordRules,
    /// The name, or `None` for a random one.
    username: Option<String>,
}

/// A user. The hash is of the password.
#[derive(Serialize)]
pub struct Account {
    username: Option<String>,
    password: String,
    password_hash: String,
}

/// Generates users.
pub struct User;

impl Generator for User {
    type Parameters = Parameters;
    type Value = Account;

    fn take(fields: &mut Fields) -> Result<Parameters, Violation> {
        Ok(Parameters {
            rules: PasswordRules::take(fields)?,
            username: fields.take_filled_text("username")?,
        })
    }

    fn make(parameters: Parameters, random: &mut impl CryptoRng) -> Result<Account, Failure> {
        let Parameters { rules, username } = parameters;
        let username = username.unwrap_or_else(|| random_username(random));
        let password = rules.generate(random);
        Account::new(Some(username), password, random)
    }

    /// Checks a user that a caller sets, and adds the hash of the password.
    ///
    /// The password is required and must have 1 to 4,096 bytes. An empty name counts as absent. `password_hash` is ignored.
    fn check(value: &str, random: &mut impl CryptoRng) -> Result<Account, Failure> {
        let (username, password) = parse_value(value).map_err(Failure::InvalidValue)?;
        Account::new(username, password, random)
    }
}

impl Account {
    fn new(
        username: Option<String>,
        password: String,
        random: &mut impl CryptoRng,
    ) -> Result<Self, Failure> {
        let password_hash = password_hash(&password, random)?;
        Ok(Self {
            username,
            password,
            password_hash,
        })
    }
}

fn parse_value(value: &str) -> Result<(Option<String>, String), Violation> {
    let mut fields = Fields::parse(value)?;
    let username = fields.take_filled_text("username")?;
    fields.ignore("password");
    let password = password_text(value)?
        .filter(|password| !password.is_empty())
        .ok_or_else(|| Violation::of("password", "is required and must not be empty"))?;
    if password.len() > PASSWORD_BYTES_MAX {
        let rule = format!("must have at most {PASSWORD_BYTES_MAX} bytes");
        return Err(Violation::of("password", rule));
    }
    fields.ignore("password_hash");
    fields.finish()?;
    Ok((username, password))
}

/// Returns the password of a user that a caller sets, or `None` if it is absent or null.
///
/// In YAML, an unquoted password of digits is a number. So numbers and booleans are accepted as their JSON text, exactly as
/// written.
fn password_text(value: &str) -> Result<Option<String>, Violation> {
    #[derive(Deserialize)]
    struct Written<'a> {
        #[serde(borrow)]
        password: Option<&'a RawValue>,
    }
    let not_a_string = |_| Violation::of("password", "must be a string");
    let Written { password } = serde_json::from_str(value).map_err(not_a_string)?;
    let Some(json) = password.map(RawValue::get) else {
        return Ok(None);
    };
    match serde_json::from_str(json).map_err(not_a_string)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Bool(_) | Value::Number(_) => Ok(Some(json.to_owned())),
        Value::Array(_) | Value::Object(_) => Err(Violation::of("password", "must be a string")),
    }
}

fn random_username(random: &mut impl CryptoRng) -> String {
    (0..USERNAME_LETTERS)
        .filter_map(|_| LETTERS.choose(random))
        .map(|letter| char::from(*letter))
        .collect()
}

/// The length of a random name.
const USERNAME_LETTERS: usize = 20;
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Returns the stored parameters with the stored name, so that a regenerated user keeps its name.
///
/// # Errors
///
/// [`Failure::InvalidValue`] if there are no parameters, because the user was set; [`Failure::Other`] if the stored value or
/// parameters are malformed.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    let Some(parameters) = parameters else {
        return Err(Failure::InvalidValue(Violation::of_whole(
            "the value was set, not generated",
        )));
    };
    let mut parameters: Parameters = canonical(&parameters)?;
    let username = Fields::parse(value)
        .and_then(|mut fields| fields.take_filled_text("username"))
        .map_err(|_| Failure::Other("the stored value is not a user".to_owned()))?;
    parameters.username = username;
    Ok(Recovered {
        parameters: to_json(&parameters)?,
        is_complete: true,
    })
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use serde_json::json;
    use sha_crypt::{PasswordVerifier, ShaCrypt};

    use super::*;
    use crate::{PARAMETERS_SCHEMA, VALUE_SCHEMA};

    fn is_hash_of(hash: &str, password: &str) -> bool {
        ShaCrypt::SHA512
            .verify_password(password.as_bytes(), hash)
            .is_ok()
    }

    fn random() -> ChaCha12Rng {
        ChaCha12Rng::seed_from_u64(11)
    }

    fn matches(schema: &str, instance: &Value) -> bool {
        let schema: Value = serde_json::from_str(schema).unwrap();
        jsonschema::draft202012::new(&schema)
            .unwrap()
            .is_valid(instance)
    }

    fn generated(parameters: &str) -> Value {
        let parameters = User::normalize(parameters, "{}").unwrap();
        serde_json::from_str(&User::generate(&parameters, "{}", &mut random()).unwrap()).unwrap()
    }

    fn accepted(value: &Value) -> Result<Value, Failure> {
        let value = User::accept(&value.to_string(), "{}", &mut random())?;
        Ok(serde_json::from_str(&value).unwrap())
    }

    #[test]
    fn normalize_fills_in_defaults_and_is_idempotent() {
        let defaults = r#"{"length":30,"exclude_upper":false,"exclude_lower":false,"exclude_number":false,"include_special":false,"username":null}"#;
        let named = defaults.replace("null", "\"ada\"");
        for (given, expected) in [
            ("{}", defaults),
            (r#"{"username":""}"#, defaults),
            (r#"{"username":null}"#, defaults),
            (r#"{"username":"ada"}"#, named.as_str()),
        ] {
            let normalized = User::normalize(given, "{}").unwrap();
            assert_eq!(normalized, expected);
            assert_eq!(User::normalize(&normalized, "{}").unwrap(), normalized);
            assert!(matches(
                PARAMETERS_SCHEMA,
                &serde_json::from_str(&normalized).unwrap()
            ));
        }
    }

    #[test]
    fn invalid_parameters_are_reported() {
        for (given, field) in [
            (r#"{"length":3}"#, "length"),
            (r#"{"user":"x"}"#, "user"),
            (r#"{"username":1}"#, "username"),
        ] {
            let Err(Failure::InvalidParameters(violation)) = User::normalize(given, "{}") else {
                panic!("{given} was accepted")
            };
            assert_eq!(violation.field.as_deref(), Some(field));
        }
    }

    #[test]
    fn generated_user_has_a_random_name_and_a_password_hash() {
        let user = generated("{}");
        assert!(matches(VALUE_SCHEMA, &user), "{user}");
        let username = user["username"].as_str().unwrap();
        assert_eq!(username.len(), 20);
        assert!(username.bytes().all(|letter| letter.is_ascii_alphabetic()));
        let password = user["password"].as_str().unwrap();
        assert_eq!(password.len(), 30);
        assert!(is_hash_of(
            user["password_hash"].as_str().unwrap(),
            password
        ));
    }

    #[test]
    fn requested_name_is_used() {
        let user = generated(r#"{"username":"ada","length":8}"#);
        assert_eq!(user["username"], "ada");
        assert_eq!(user["password"].as_str().unwrap().len(), 8);
    }

    #[test]
    fn user_that_is_set_gets_a_new_hash() {
        let user =
            accepted(&json!({"username": "ada", "password": "päss", "password_hash": "$6$x$y"}))
                .unwrap();
        assert!(matches(VALUE_SCHEMA, &user));
        assert_eq!(user["username"], "ada");
        assert!(is_hash_of(user["password_hash"].as_str().unwrap(), "päss"));
    }

    #[test]
    fn number_or_boolean_password_keeps_its_exact_text() {
        for written in [
            "1.50",
            "1e3",
            "-0",
            "12345678901234567890123",
            "true",
            "false",
        ] {
            let value = format!(r#"{{"password":{written}}}"#);
            let user = User::accept(&value, "{}", &mut random()).unwrap();
            let user: Value = serde_json::from_str(&user).unwrap();
            assert_eq!(user["password"], written);
        }
    }

    #[test]
    fn empty_name_is_absent() {
        for value in [
            json!({"password": "p"}),
            json!({"password": "p", "username": ""}),
            json!({"password": "p", "username": null}),
        ] {
            let user = accepted(&value).unwrap();
            assert_eq!(user["username"], Value::Null);
            assert!(matches(VALUE_SCHEMA, &user));
        }
    }

    #[test]
    fn password_is_accepted_up_to_the_maximum_length() {
        let longest = "p".repeat(PASSWORD_BYTES_MAX);
        assert_eq!(
            accepted(&json!({"password": longest})).unwrap()["password"],
            longest
        );
        let too_long = json!({"password": format!("{longest}p")});
        assert!(matches!(
            accepted(&too_long),
            Err(Failure::InvalidValue(Violation { field: Some(field), .. })) if field == "password"
        ));
    }

    #[test]
    fn the_error_for_an_invalid_user_names_the_field() {
        for (value, field) in [
            (json!({"username": "ada"}), Some("password")),
            (json!({"password": ""}), Some("password")),
            (json!({"password": null}), Some("password")),
            (json!({"password": [5]}), Some("password")),
            (json!({"password": {"a": 5}}), Some("password")),
            (json!({"password": "p", "username": 5}), Some("username")),
            (json!({"password": "p", "shoe_size": 43}), Some("shoe_size")),
            (json!("p"), None),
        ] {
            let Err(Failure::InvalidValue(violation)) = accepted(&value) else {
                panic!("{value} was accepted")
            };
            assert_eq!(violation.field.as_deref(), field, "{value}");
        }
    }

    #[test]
    fn recovered_parameters_contain_the_stored_name() {
        let stored = User::normalize(r#"{"length":12}"#, "{}").unwrap();
        let recovered = recover(Some(stored), r#"{"username":"ada"}"#).unwrap();
        assert_eq!(
            recovered,
            Recovered {
                parameters: User::normalize(r#"{"length":12,"username":"ada"}"#, "{}").unwrap(),
                is_complete: true
            }
        );
    }

    #[test]
    fn a_user_that_was_set_is_not_regenerated() {
        assert_eq!(
            recover(None, r#"{"username":"ada"}"#),
            Err(Failure::InvalidValue(Violation::of_whole(
                "the value was set, not generated"
            )))
        );
    }
}
