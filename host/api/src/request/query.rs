//! Query parameters.

use std::convert::Infallible;

use axum::{extract::FromRequestParts, http::request::Parts};

/// The parameters of a query, percent-decoded.
pub(crate) struct QueryParameters {
    pairs: Vec<(String, String)>,
}

impl<S: Sync> FromRequestParts<S> for QueryParameters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(
            parts.uri.query().unwrap_or_default().as_bytes(),
        ))
    }
}

/// A query is invalid. Messages are for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryError {
    #[error("only one of the parameters {0} and {1} may be given")]
    Exclusive(&'static str, &'static str),
    #[error("the parameter {parameter} must be {expected}")]
    Malformed {
        parameter: &'static str,
        /// The expected type, with its article.
        expected: &'static str,
    },
    /// The first parameter requires the second.
    #[error("the parameter {0} requires the parameter {1}")]
    Dependent(&'static str, &'static str),
    /// A required parameter is absent or empty.
    #[error("the parameter {0} is required")]
    Missing(&'static str),
    #[error("the parameter {0} must not be repeated")]
    Repeated(&'static str),
}

impl QueryParameters {
    /// Parses the form encoding of queries and form bodies.
    pub(crate) fn parse(encoded: &[u8]) -> Self {
        Self {
            pairs: form_urlencoded::parse(encoded).into_owned().collect(),
        }
    }

    /// Returns whether a parameter is present, even if empty.
    pub(crate) fn has(&self, parameter: &str) -> bool {
        self.pairs.iter().any(|(name, _)| name == parameter)
    }

    pub(crate) fn text(&self, parameter: &'static str) -> Result<Option<&str>, QueryError> {
        let mut found = self
            .pairs
            .iter()
            .filter(|(name, _)| name == parameter)
            .map(|(_, value)| value.as_str());
        let text = found.next();
        if found.next().is_some() {
            return Err(QueryError::Repeated(parameter));
        }
        Ok(text)
    }

    /// Returns the value of a required, non-empty parameter.
    pub(crate) fn required(&self, parameter: &'static str) -> Result<&str, QueryError> {
        self.non_empty_text(parameter)?
            .ok_or(QueryError::Missing(parameter))
    }

    /// Returns a boolean parameter: `true` or `false` in any case, `1` or `0`. An empty value counts as absent.
    pub(crate) fn boolean(&self, parameter: &'static str) -> Result<Option<bool>, QueryError> {
        let Some(text) = self.non_empty_text(parameter)? else {
            return Ok(None);
        };
        let is_any =
            |values: [&str; 2]| values.iter().any(|value| text.eq_ignore_ascii_case(value));
        if is_any(["true", "1"]) {
            Ok(Some(true))
        } else if is_any(["false", "0"]) {
            Ok(Some(false))
        } else {
            Err(QueryError::Malformed {
                parameter,
                expected: "true or false",
            })
        }
    }

    /// Returns an integer parameter. An empty value counts as absent.
    ///
    /// Its length is limited, because the audit trail omits the details of a request if they are too long. Leading zeros could
    /// otherwise hide other parameters.
    pub(crate) fn integer(&self, parameter: &'static str) -> Result<Option<i64>, QueryError> {
        let Some(text) = self.non_empty_text(parameter)? else {
            return Ok(None);
        };
        let is_short = text.len() <= INTEGER_CHARACTERS_MAX;
        let number = text.parse().ok().filter(|_| is_short);
        number.map(Some).ok_or(QueryError::Malformed {
            parameter,
            expected: "a whole number of at most 64 bits and 20 characters",
        })
    }

    fn non_empty_text(&self, parameter: &'static str) -> Result<Option<&str>, QueryError> {
        Ok(self.text(parameter)?.filter(|text| !text.is_empty()))
    }
}

/// Maximum length of an integer: the length of `i64::MIN`.
const INTEGER_CHARACTERS_MAX: usize = 20;
