//! API requests.

use reqwest::Method;
use serde::Serialize;
use zeroize::Zeroizing;

use super::{Error, Loss};

/// An API request, which can be sent more than once.
#[derive(Clone)]
pub(crate) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Zeroizing<Vec<u8>>>,
    pub(super) needs_login: bool,
    has_query: bool,
}

impl Call {
    /// Creates a request for this path, which starts with a slash.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body: None,
            needs_login: true,
            has_query: false,
        }
    }

    /// Marks the request as not requiring a login.
    pub(crate) fn without_login(mut self) -> Self {
        self.needs_login = false;
        self
    }

    /// Adds a query parameter.
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.path.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        let mut query = form_urlencoded::Serializer::new(String::new());
        self.path.push_str(&query.append_pair(name, value).finish());
        self
    }

    /// Adds a query parameter if it has a value.
    pub(crate) fn query_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Whether a retry after this error has no side effects: the request was not sent, or it only reads.
    pub(super) fn may_be_sent_again_after(&self, error: &Error) -> bool {
        let Error::Unreachable { loss, .. } = error else {
            return false;
        };
        match loss {
            Loss::NotConnected => true,
            Loss::Lost => self.method.is_safe(),
            Loss::Lasting => false,
        }
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(body).map_err(Error::RequestMalformed)?;
        self.body = Some(Zeroizing::new(body));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_parameters_are_encoded() {
        let call = Call::new(Method::GET, "/api/v1/data")
            .query("name", "/a b/[c]&d=é")
            .query_if("versions", None)
            .query_if("current", Some("true"));
        assert_eq!(
            call.path,
            "/api/v1/data?name=%2Fa+b%2F%5Bc%5D%26d%3D%C3%A9&current=true"
        );
    }
}
