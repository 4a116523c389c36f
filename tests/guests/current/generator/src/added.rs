//! The interfaces that version 0.2.0 added.

use serde_json::Value;

use crate::{
    bindings::{
        exports::keywright::generator::{expiry, settings_descriptor},
        keywright::generator::types::{Failure, Violation},
    },
    component::Component,
};

impl settings_descriptor::Guest for Component {
    fn describe_settings() -> String {
        r#"{
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "expires_after": {"type": "integer"},
                "rotate_after": {"type": "integer"},
                "refuses": {"type": "boolean"}
            },
            "additionalProperties": false
        }"#
        .to_owned()
    }
}

impl expiry::Guest for Component {
    /// Adds the settings to the time of the call. A value that was set is never rotated.
    fn expires(value: expiry::NewValue) -> Result<expiry::Lifetime, Failure> {
        if value.value.contains("secret") {
            return Err(Failure::Other("it was given a secret".to_owned()));
        }
        let settings: Value = serde_json::from_str(&value.settings).unwrap_or_default();
        if settings["refuses"] == true {
            return Err(Failure::InvalidValue(Violation {
                member: Some("secret".to_owned()),
                rule: "has expired".to_owned(),
            }));
        }
        let after = |name: &str| {
            let seconds = settings[name].as_i64()?;
            Some(value.now_seconds.wrapping_add_signed(seconds))
        };
        Ok(expiry::Lifetime {
            expires_seconds: after("expires_after"),
            rotate_seconds: after("rotate_after").filter(|_| value.parameters.is_some()),
        })
    }
}
