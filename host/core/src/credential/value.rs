//! The size limits for values of all types.

use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::{Failure, Secret};

/// The maximum size of a value, in bytes: of the text if the value is a string, otherwise of its JSON.
pub const VALUE_BYTES_MAX: usize = 65_536;

/// The maximum length of `public_key` and `username` in a value, in characters.
pub const LONG_MEMBER_CHARACTERS_MAX: usize = 7_000;

const LONG_MEMBERS: [&str; 2] = ["public_key", "username"];

/// Checks the size of a value and of its fields.
///
/// # Errors
/// [`Failure::ValueTooLarge`], with the name of the part that is too large.
pub(crate) fn check_size(value: &Secret) -> Result<(), Failure> {
    let json = value.expose();
    // A string is not longer than its JSON, and a field not longer than the value.
    if json.len() <= LONG_MEMBER_CHARACTERS_MAX {
        return Ok(());
    }
    let string = keywright_json::text(json).map(Zeroizing::new).ok();
    check_bytes(string.as_ref().map_or(json.len(), |string| string.len()))?;
    let is_too_long = |(name, field): (String, &RawValue)| {
        let text = keywright_json::text(field.get()).map(Zeroizing::new);
        LONG_MEMBERS.contains(&name.as_str())
            && text.is_ok_and(|text| text.chars().count() > LONG_MEMBER_CHARACTERS_MAX)
    };
    // A value that is not an object has no fields.
    let fields = keywright_json::fields(json).unwrap_or_default();
    if fields.into_iter().any(is_too_long) {
        return Err(Failure::ValueTooLarge {
            what: "a public_key or a username",
            limit: "7,000 characters",
        });
    }
    Ok(())
}

/// Checks a lower bound of the size of a value.
///
/// # Errors
/// [`Failure::ValueTooLarge`].
pub(crate) fn check_bytes(bytes: usize) -> Result<(), Failure> {
    if bytes > VALUE_BYTES_MAX {
        return Err(Failure::ValueTooLarge {
            what: "the value of a credential",
            limit: "65,536 bytes",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_string_counts_its_own_bytes_and_an_object_its_json() {
        let object_frame = json!({"a": ""}).to_string().len();
        for (value, fits) in [
            (json!("\"".repeat(VALUE_BYTES_MAX)), true),
            (json!("a".repeat(VALUE_BYTES_MAX + 1)), false),
            (
                json!({"a": "b".repeat(VALUE_BYTES_MAX - object_frame)}),
                true,
            ),
            (
                json!({"a": "b".repeat(VALUE_BYTES_MAX - object_frame + 1)}),
                false,
            ),
        ] {
            assert_eq!(check_size(&Secret::new(value.to_string())).is_ok(), fits);
        }
    }

    #[test]
    fn long_fields_have_their_own_limit() {
        for name in LONG_MEMBERS {
            let longest = "ä".repeat(LONG_MEMBER_CHARACTERS_MAX);
            assert!(check_size(&Secret::new(json!({name: longest}).to_string())).is_ok());
            let too_long = format!("{longest}x");
            assert!(check_size(&Secret::new(json!({name: too_long}).to_string())).is_err());
        }
    }
}
