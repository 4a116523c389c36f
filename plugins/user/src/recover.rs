//! Recovers the parameters of a stored user.

use keywright_plugin_support::{Failure, Fields, Recovered, Violation, canonical, to_json};

use crate::generate::Parameters;

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
    use super::*;
    use keywright_plugin_support::Generator as _;

    use crate::generate::User;

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
