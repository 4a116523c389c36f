//! One of many who call a server.

use reqwest::{Client, Method, RequestBuilder, header};
use serde_json::Value;

use crate::Answer;

/// One of many who call a server, with a token of its own. What [`crate::Server`] itself sends, it sends as the client
/// `developer`, who may do everything.
#[derive(Clone)]
pub struct Caller {
    client: Client,
    base_url: String,
    actor: String,
    token: String,
}

impl Caller {
    pub(crate) fn new(client: Client, base_url: String, actor: String, token: String) -> Self {
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

    /// Its bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path)).await
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
        Answer::to(self.request(Method::DELETE, path)).await
    }

    /// Any method with a JSON body.
    pub async fn send(&self, method: Method, path: &str, body: Value) -> Answer {
        Answer::to(self.request(method, path).body(body.to_string())).await
    }

    /// A request that the test completes: with the token and the content type.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.base_url))
            .bearer_auth(&self.token)
            .header(header::CONTENT_TYPE, "application/json")
    }
}
