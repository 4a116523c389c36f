//! A server's response.

use reqwest::RequestBuilder;
use serde_json::Value;

/// A server's response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// Sends a request and returns the response.
    pub async fn to(request: RequestBuilder) -> Self {
        Self::try_to(request).await.unwrap()
    }

    /// Sends a request to a server that may stop before it responds.
    ///
    /// # Errors
    ///
    /// Returns an error if the response is missing or incomplete.
    pub async fn try_to(request: RequestBuilder) -> reqwest::Result<Self> {
        let response = request.send().await?;
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        Ok(Self {
            status: response.status().as_u16(),
            headers,
            body: response.text().await?,
        })
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|cause| panic!("{cause} in the answer {self:?}"))
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body's `error` field.
    pub fn error(&self) -> String {
        let json = self.json();
        let members = json
            .as_object()
            .unwrap_or_else(|| panic!("no object: {self:?}"));
        assert!(
            members.values().all(Value::is_string),
            "not all texts: {self:?}"
        );
        members
            .get("error")
            .and_then(Value::as_str)
            .expect("an error member")
            .to_owned()
    }

    /// Returns the response if it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {}", self.status, self.body);
        self
    }
}
