//! Callers of a server, applications with a client certificate, and the server's responses.

use std::{fs, path::PathBuf};

use rcgen::{DnType, ExtendedKeyUsagePurpose};
use reqwest::{Body, Client, Method, Request, RequestBuilder, header};
use serde_json::Value;
use tempfile::TempDir;

use crate::{Options, Server, Shell, TestCertificate, client_without_reading};

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

    /// Returns the actor, as named in permissions.
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// Returns this caller for another server that trusts the same identity provider.
    pub fn at(&self, server: &Server) -> Self {
        Self {
            base_url: server.base_url().to_owned(),
            ..self.clone()
        }
    }

    /// Returns the caller's bearer token.
    ///
    /// # Panics
    /// Panics if the caller has no token.
    pub fn token(&self) -> &str {
        self.token.as_deref().expect("a caller with a token")
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Response {
        Response::to(self.request(Method::GET, path)).await
    }

    /// Sends a GET request over a separate connection, whose flow-control window has room for one byte of the body.
    pub async fn get_without_reading(&self, path: &str) -> reqwest::Response {
        let request = client_without_reading().get(format!("{}{path}", self.base_url));
        request.bearer_auth(self.token()).send().await.unwrap()
    }

    /// Sends a PUT request with a JSON body.
    pub async fn put(&self, path: &str, body: Value) -> Response {
        self.send(Method::PUT, path, body).await
    }

    /// Sends a POST request with a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Response {
        self.send(Method::POST, path, body).await
    }

    /// Sends a PATCH request with a JSON body.
    pub async fn patch(&self, path: &str, body: Value) -> Response {
        self.send(Method::PATCH, path, body).await
    }

    /// Sends a DELETE request.
    pub async fn delete(&self, path: &str) -> Response {
        self.send_without_body(Method::DELETE, path).await
    }

    /// Sends a request with any method and without a body.
    pub async fn send_without_body(&self, method: Method, path: &str) -> Response {
        Response::to(self.request(method, path)).await
    }

    /// Sends a request with any method and a JSON body.
    pub async fn send(&self, method: Method, path: &str, body: Value) -> Response {
        Response::to(self.request(method, path).body(body.to_string())).await
    }

    /// Returns a request for the test to complete and send, with the content type and the caller's token, if any.
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

/// A server's response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The request: its method, its address, and the beginning of its body. Failing assertions name it.
    pub request: String,
    /// The status.
    pub status: u16,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Response {
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
        let (client, request) = request.build_split();
        let request = request?;
        let sent = description(&request);
        let response = client.execute(request).await?;
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        Ok(Self {
            request: sent,
            status: response.status().as_u16(),
            headers,
            body: response.text().await?,
        })
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|cause| panic!("{cause} in the response {self:?}"))
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the body's `error` field, which is not empty.
    #[track_caller]
    pub fn error(&self) -> String {
        let json = self.json();
        let fields = json
            .as_object()
            .unwrap_or_else(|| panic!("the body is not an object: {self:?}"));
        assert!(
            fields.values().all(Value::is_string),
            "a field of the body is not a string: {self:?}"
        );
        let error = fields.get("error").and_then(Value::as_str);
        let error = error.unwrap_or_default().to_owned();
        assert!(!error.is_empty(), "there is no error: {self:?}");
        error
    }

    /// Asserts the status, and returns the response.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Asserts that the body contains a text.
    #[track_caller]
    pub fn assert_contains(&self, text: &str) {
        assert!(self.body.contains(text), "{text:?} is not in {self:?}");
    }

    /// Asserts that the body does not contain a text.
    #[track_caller]
    pub fn assert_lacks(&self, text: &str) {
        assert!(!self.body.contains(text), "{text:?} is in {self:?}");
    }

    /// Asserts the status, and that the error contains these words.
    #[track_caller]
    pub fn expect_error(&self, status: u16, words: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let error = self.error();
        assert!(error.contains(words), "{words:?} is not in {self:?}");
    }
}

/// Returns the method, the address and the beginning of the body of a request.
fn description(request: &Request) -> String {
    const BODY_BYTES_MAX: usize = 1_000;
    let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
    let body = String::from_utf8_lossy(body.get(..BODY_BYTES_MAX).unwrap_or(body));
    format!("{} {} {body}", request.method(), request.url())
}

/// An application with a client certificate, in files that are deleted on drop.
pub struct Application {
    folder: TempDir,
}

impl Application {
    /// Issues a certificate from a new CA.
    pub fn issued() -> Self {
        let authority = TestCertificate::root("applications");
        let application = authority.leaf_with("application", |parameters| {
            let name = &mut parameters.distinguished_name;
            name.push(DnType::OrganizationalUnitName, format!("app:{ID}"));
            parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        });
        let folder = TempDir::new().unwrap();
        for (file, pem) in [
            (AUTHORITIES, authority.certificate),
            (CERTIFICATE, application.certificate),
            (KEY, application.private_key),
        ] {
            fs::write(folder.path().join(file), pem).unwrap();
        }
        Self { folder }
    }

    /// Returns the options of a server that trusts the CA and grants the application all operations on all credentials.
    pub fn options(&self) -> Options {
        let authorities = self.folder.path().join(AUTHORITIES);
        let line = format!("client_authorities = \"{}\"", authorities.display());
        Options::default().tls_settings(&line).extra(&format!(
            "[[authorization.permissions]]\npath = \"/*\"\nactors = [\"mtls-app:{ID}\"]\n\
             operations = [\"read\", \"write\", \"delete\", \"read_acl\", \"write_acl\"]\n"
        ))
    }

    /// Returns the path of the certificate, in PEM.
    pub fn certificate_file(&self) -> PathBuf {
        self.folder.path().join(CERTIFICATE)
    }

    /// Returns the path of the private key, PKCS#8 in PEM.
    pub fn key_file(&self) -> PathBuf {
        self.folder.path().join(KEY)
    }

    /// Copies the certificate and its key to a shell's folder, as `app.pem` and `app-key.pem`.
    pub fn equip(&self, shell: &Shell) {
        for file in [CERTIFICATE, KEY] {
            fs::copy(self.folder.path().join(file), shell.file(file)).unwrap();
        }
    }
}

const AUTHORITIES: &str = "clients.pem";
const CERTIFICATE: &str = "app.pem";
const KEY: &str = "app-key.pem";

/// The application's id.
const ID: &str = "7c9b8a52-3d1e-4f60-9a7b-2c4d6e8f0a1b";
