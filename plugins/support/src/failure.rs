/// One rule that what the caller sent does not keep.
///
/// It never repeats a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The parameter, or the member of the value, that breaks the rule; `None` when it is no single one.
    pub member: Option<String>,
    /// The rule in a few words, written for the caller: `must be 2048, 3072 or 4096`.
    pub rule: String,
}

impl Violation {
    /// A rule about one member.
    pub fn of(member: impl Into<String>, rule: impl Into<String>) -> Self {
        Self {
            member: Some(member.into()),
            rule: rule.into(),
        }
    }

    /// A rule about several members, or about the whole.
    pub fn of_whole(rule: impl Into<String>) -> Self {
        Self {
            member: None,
            rule: rule.into(),
        }
    }
}

/// Why a plugin gives no result; the cases are those of `keywright:generator/types.failure`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The parameters break a rule. The caller must act.
    InvalidParameters(Violation),
    /// The value breaks a rule. The caller must act.
    InvalidValue(Violation),
    /// The settings are wrong. The operator must act.
    Misconfigured(String),
    /// Anything else. The text is for the log.
    Other(String),
}

/// Implements the conversion of [`Failure`] into the `failure` of a plugin's own bindings.
///
/// The argument is the path of the module that `wit-bindgen` made of `keywright:generator/types`.
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
                        member: violation.member,
                        rule: violation.rule,
                    }
                }
            }
        };
    };
}
