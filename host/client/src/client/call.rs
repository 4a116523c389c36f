//! A request of the API, before it is sent.

use reqwest::Method;
use serde::Serialize;
use zeroize::Zeroizing;

use super::{Error, Loss};

/// A request of the API. It can be sent more than once.
#[derive(Clone)]
pub(crate) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Zeroizing<Vec<u8>>>,
    pub(super) needs_login: bool,
    has_query: bool,
}

impl Call {
    /// A request to this path, which begins with a slash.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body: None,
            needs_login: true,
            has_query: false,
        }
    }

    /// A request that is answered without a login.
    pub(crate) fn without_login(mut self) -> Self {
        self.needs_login = false;
        self
    }

    /// Adds a parameter to the query.
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.path.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        let mut query = form_urlencoded::Serializer::new(String::new());
        self.path.push_str(&query.append_pair(name, value).finish());
        self
    }

    /// Adds a parameter to the query, where there is a value for it.
    pub(crate) fn query_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Whether nothing is done twice when it is sent again after this error: it was not sent, or it only reads.
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

    /// Sends this as the body.
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
    fn parameters_of_the_query_are_encoded() {
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
