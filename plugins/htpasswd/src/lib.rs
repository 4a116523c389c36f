//! Derives lines of htpasswd files from stored passwords: a user's name, and the password's hash in crypt(3) format.
//!
//! The salt is generated once and stored in the hash, so each read of a version returns the same line.

use keywright_plugin_support::{
    Failure, Input, PASSWORD_BYTES_MAX, Violation, canonical, no_settings, password_hash, to_json,
};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::derived_generator_component! {
    credential_type: "htpasswd",
    summary: "Lines of htpasswd files, derived from stored passwords",
    // The salt. The password adds none, because it is not generated here.
    entropy_bits_min: Some(48),
    input_parameter: CREDENTIAL,
    example_type: "user",
    example_value: r#"{"username": "example", "password": "an example"}"#,
    generate: generate,
}

/// The canonical parameters, which the host has validated against their schema.
#[derive(Serialize, Deserialize)]
struct Parameters {
    credential: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
}

/// A line of an htpasswd file.
#[derive(Serialize)]
struct Htpasswd {
    username: String,
    password_hash: String,
    line: String,
}

/// Derives a line from the credential that the parameters name.
pub fn generate(
    parameters: &str,
    settings: &str,
    inputs: &[Input],
    random: &mut impl CryptoRng,
) -> Result<String, Failure> {
    no_settings(settings)?;
    let Parameters { username, .. } = canonical(parameters)?;
    let [input] = inputs else {
        return Err(Failure::Other("there must be exactly one input".to_owned()));
    };
    let (name, password) = match input.json() {
        Value::String(password) => (None, Some(password)),
        Value::Object(mut fields) => {
            let mut text = |name| match fields.remove(name) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            };
            (text("username"), text("password"))
        }
        _ => (None, None),
    };
    let password = password
        .filter(|password| !password.is_empty())
        .ok_or_else(|| refused(CREDENTIAL, NO_PASSWORD))?;
    if password.len() > PASSWORD_BYTES_MAX {
        let rule =
            format!("must name a credential whose password has at most {PASSWORD_BYTES_MAX} bytes");
        return Err(refused(CREDENTIAL, &rule));
    }
    let is_given = username.is_some();
    let username = match username {
        Some(username) => username,
        None => name.ok_or_else(|| {
            refused(
                "username",
                "is required, because the credential has no field username",
            )
        })?,
    };
    let is_allowed = |character: char| character != ':' && !character.is_control();
    let characters = username.chars().count();
    // Servers skip lines that start with `#` as comments, and some remove leading white space.
    let is_skipped = username.starts_with(|first: char| first == '#' || first.is_whitespace());
    if !(1..=USERNAME_CHARACTERS_MAX).contains(&characters)
        || !username.chars().all(is_allowed)
        || is_skipped
    {
        let remedy = if is_given {
            ""
        } else {
            "; set it, because the username of the credential breaks this rule"
        };
        return Err(refused("username", &format!("{USERNAME_RULE}{remedy}")));
    }
    let password_hash = password_hash(&password, random)?;
    let line = format!("{username}:{password_hash}");
    to_json(&Htpasswd {
        username,
        password_hash,
        line,
    })
}

fn refused(field: &str, rule: &str) -> Failure {
    Failure::InvalidParameters(Violation::of(field, rule))
}

/// The parameter that names the credential with the password.
const CREDENTIAL: &str = "credential";

/// The maximum length of a name, in characters: Apache's limit.
const USERNAME_CHARACTERS_MAX: usize = 255;

const USERNAME_RULE: &str = "must be 1 to 255 characters without colons and control characters, and must not start with # or \
     white space";

const NO_PASSWORD: &str =
    "must name a credential whose value is a password, or has a field password, that is not empty";

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use serde_json::json;

    use super::*;

    fn derived(parameters: &Value, input: &Value) -> Result<Value, Failure> {
        let input = Input {
            pointer: "/credential".to_owned(),
            value: input.to_string(),
        };
        let random = &mut ChaCha12Rng::seed_from_u64(1);
        let value = generate(&parameters.to_string(), "{}", &[input], random)?;
        Ok(serde_json::from_str(&value).unwrap())
    }

    #[test]
    fn credential_without_a_password_or_a_usable_name_is_refused() {
        let named = json!({"credential": "/c"});
        for (input, field) in [
            (json!({"username": "ada"}), "credential"),
            (json!({"username": "ada", "password": null}), "credential"),
            (json!(["x"]), "credential"),
            (json!({"username": "ada", "password": ""}), "credential"),
            (json!("p".repeat(PASSWORD_BYTES_MAX + 1)), "credential"),
            (json!("p".repeat(PASSWORD_BYTES_MAX)), "username"),
            (json!({"username": null, "password": "x"}), "username"),
            (json!({"username": "", "password": "x"}), "username"),
            (json!({"username": "a:b", "password": "x"}), "username"),
            (json!({"username": "a\nb", "password": "x"}), "username"),
            (json!({"username": "#a", "password": "x"}), "username"),
            (json!({"username": " a", "password": "x"}), "username"),
            (
                json!({"username": "a".repeat(USERNAME_CHARACTERS_MAX + 1), "password": "x"}),
                "username",
            ),
        ] {
            let failure = derived(&named, &input).unwrap_err();
            let Failure::InvalidParameters(violation) = failure else {
                panic!("{failure:?}")
            };
            assert_eq!(violation.field.as_deref(), Some(field), "{input}");
        }
    }
}
