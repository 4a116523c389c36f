/// A rule that the caller's input breaks. Never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The parameter, or the field of the value, that breaks the rule; `None` if the rule concerns several of them or
    /// the whole input.
    pub field: Option<String>,
    /// The rule, worded for the caller: `must be 2048, 3072 or 4096`.
    pub rule: String,
}

impl Violation {
    /// Creates a violation of a rule about one parameter or field.
    pub fn of(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            field: Some(field.into()),
            rule: rule.into(),
        }
    }

    /// Creates a violation of a rule about several parameters or fields, or about the whole input.
    pub fn of_whole(rule: impl Into<String>) -> Self {
        Self {
            field: None,
            rule: rule.into(),
        }
    }
}

/// The reason why a call of a plugin failed. The cases mirror the WIT variant `keywright:generator/types.failure`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The parameters break a rule. The caller must act.
    InvalidParameters(Violation),
    /// The value breaks a rule. The caller must act.
    InvalidValue(Violation),
    /// The settings are wrong. The operator must act.
    Misconfigured(String),
    /// Any other failure. The text is logged.
    Other(String),
}

/// Implements the conversion from [`Failure`] to the `failure` of a plugin's own bindings.
///
/// The argument is the path of the module that `wit-bindgen` generated for `keywright:generator/types`.
#[macro_export]
macro_rules! wit_failure {
    ($types:path) => {
        const _: () = {
            use $types as types;

            impl From<$crate::Failure> for types::Failure {
                fn from(failure: $crate::Failure) -> Self {
                    match failure {
                        $crate::Failure::InvalidParameters(violation) => {
                            Self::InvalidParameters(violation.into())
                        }
                        $crate::Failure::InvalidValue(violation) => {
                            Self::InvalidValue(violation.into())
                        }
                        $crate::Failure::Misconfigured(text) => Self::Misconfigured(text),
                        $crate::Failure::Other(text) => Self::Other(text),
                    }
                }
            }

            impl From<$crate::Violation> for types::Violation {
                fn from(violation: $crate::Violation) -> Self {
                    Self {
                        member: violation.field,
                        rule: violation.rule,
                    }
                }
            }
        };
    };
}
