//! One of many who call a server.

use reqwest::{Client, Method, RequestBuilder, Response, header};
use serde_json::Value;

use crate::{Answer, Server, server::trusting};

/// One of many who call a server, with a token or a client certificate of its own. What [`crate::Server`] itself sends, it sends as the client
/// `developer`, who may do everything.
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

    /// Who it is, as permissions name it.
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

    /// Its bearer token, which it must have.
    pub fn token(&self) -> &str {
        self.token.as_deref().expect("a caller with a token")
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path)).await
    }

    /// GET over a connection of its own, on which the server may send the head of a response and one byte of its body.
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

    /// A request that the test completes: with the token, if it has one, and the content type.
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
