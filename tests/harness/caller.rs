//! A caller of a server.

use reqwest::{Client, Method, RequestBuilder, Response, header};
use serde_json::Value;

use crate::{Answer, Server, server::trusting};

/// A caller of a server, with its own token or client certificate. [`crate::Server`] itself sends requests as the
/// client `developer`, which has all permissions.
#[derive(Clone)]
pub struct Caller {
    client: Client,
    base_url: String,
    actor: String,
    token: Option<String>,
}

impl Caller {
    pub(crate) fn new(
        client: Client,
        base_url: String,
        actor: String,
        token: Option<String>,
    ) -> Self {
        Self {
            client,
            base_url,
            actor,
            token,
        }
    }

    /// The actor, as named in permissions.
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// The same caller of another server that trusts the same identity provider.
    pub fn at(&self, server: &Server) -> Self {
        Self {
            base_url: server.base_url().to_owned(),
            ..self.clone()
        }
    }

    /// Its bearer token.
    ///
    /// # Panics
    /// Panics if the caller has none.
    pub fn token(&self) -> &str {
        self.token.as_deref().expect("a caller with a token")
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path)).await
    }

    /// Sends a GET request over its own connection, with a window for the head and one byte of the body.
    pub async fn get_without_reading(&self, path: &str) -> Response {
        let client = trusting()
            .http2_initial_stream_window_size(1)
            .build()
            .unwrap();
        let request = client.get(format!("{}{path}", self.base_url));
        request.bearer_auth(self.token()).send().await.unwrap()
    }

    /// PUT a JSON body.
    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, body).await
    }

    /// POST a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, body).await
    }

    /// PATCH with a JSON body.
    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, path, body).await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send_without_body(Method::DELETE, path).await
    }

    /// Any method without a body.
    pub async fn send_without_body(&self, method: Method, path: &str) -> Answer {
        Answer::to(self.request(method, path)).await
    }

    /// Any method with a JSON body.
    pub async fn send(&self, method: Method, path: &str, body: Value) -> Answer {
        Answer::to(self.request(method, path).body(body.to_string())).await
    }

    /// A request for the test to complete, with the caller's token, if any, and the content type.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self
            .client
            .request(method, format!("{}{path}", self.base_url))
            .header(header::CONTENT_TYPE, "application/json");
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}
