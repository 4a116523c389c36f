//! Generates users: a name, a random password, and the password's hash in crypt(3) format.
//!
//! The salt is generated once and stored in the hash, so each read of a version returns the same hash.

use keywright_plugin_support::{
    Failure, Fields, Generator, PASSWORD_BYTES_MAX, PasswordRules, Recovered, Violation, canonical,
    password_hash, to_json,
};
use rand::seq::IndexedRandom;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: User,
    credential_type: "user",
    summary: "Users with a random password and its hash",
    // With default parameters. Only the password counts, not the name or the salt.
    entropy_bits_min: 160,
    recover: recover,
}

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
