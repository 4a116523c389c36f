//! Requests that must succeed, and their responses.

use std::fs;

use keywright_harness::{QUICK_KEY, Response, Server, key_file};
use reqwest::{Certificate, Client, ClientBuilder, Method, header::CONTENT_TYPE};
use serde_json::{Value, json};

/// Parses a table of requests, one per line: the expected status, the method, the target, and an optional body.
/// Lines that start with `#` are comments.
pub(crate) fn requests(table: &str) -> Vec<(u16, Method, String, Value)> {
    let requests = rows(table).map(|row| {
        let (status, method, target, body) = request(row);
        let body = match body {
            "" => Value::Null,
            body => serde_json::from_str(body).unwrap(),
        };
        (status, method, target.to_owned(), body)
    });
    requests.collect()
}

fn request(row: &str) -> (u16, Method, &str, &str) {
    let mut parts = row.splitn(4, ' ');
    let mut part = || parts.next().unwrap_or_default();
    let (status, method) = (part().parse().unwrap(), part().parse().unwrap());
    (status, method, part(), part())
}

fn rows(table: &str) -> impl Iterator<Item = &str> {
    let lines = table.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Asserts the status of each request of a table (see [`requests`]), and that the error contains the words after ` => `, if any,
/// and is the only field of the response.
pub(crate) async fn assert_refused(server: &Server, table: &str) {
    for row in rows(table) {
        let (row, words) = row.split_once(" => ").unwrap_or((row, ""));
        let (status, method, target, body) = request(row);
        let mut request = server.authorized(method, target);
        if !body.is_empty() {
            request = request.body(body.to_owned());
        }
        let response = server.send(request).await;
        response.expect_error(status, words);
        assert_eq!(fields(&response.json()), ["error"], "{row}");
    }
}

/// Returns the elements of a JSON array.
pub(crate) fn each(array: Value) -> Vec<Value> {
    serde_json::from_value(array).unwrap()
}

/// Returns the field `name` of each object.
pub(crate) fn names(objects: &[Value]) -> Vec<&str> {
    let names = objects.iter().map(|object| object["name"].as_str());
    names.collect::<Option<_>>().unwrap()
}

/// The types that CredHub has.
pub(crate) const TYPES: [&str; 7] = [
    "value",
    "json",
    "password",
    "user",
    "certificate",
    "rsa",
    "ssh",
];

/// Sends a request, without a body if it is null.
pub(crate) async fn send(server: &Server, method: Method, path: &str, body: &Value) -> Response {
    let mut request = server.authorized(method, path);
    if !body.is_null() {
        request = request.body(body.to_string());
    }
    server.send(request).await
}

/// Returns a client that trusts the test servers, with additional settings.
pub(crate) fn client(settings: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Client {
    let authority = fs::read(key_file("ca.pem")).unwrap();
    let trusted = [Certificate::from_pem(&authority).unwrap()];
    let builder = Client::builder().tls_certs_only(trusted).no_proxy();
    settings(builder).build().unwrap()
}

/// Returns an access token of the development user.
pub(crate) async fn user_token(server: &Server) -> String {
    let form = "grant_type=password&client_id=credhub_cli&client_secret=&username=developer\
                &password=developer-password";
    let request = server
        .request(Method::POST, "/identity/oauth/token")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form);
    let granted = server.send(request).await.expect(200).json();
    granted["access_token"].as_str().unwrap().to_owned()
}

/// Returns parameters for each type that can be generated.
pub(crate) fn generatable() -> [(&'static str, Value); 5] {
    let certificate = json!({"common_name": "root", "is_ca": true, "key_type": QUICK_KEY});
    [
        ("password", json!({})),
        ("user", json!({})),
        ("rsa", json!({})),
        ("ssh", json!({})),
        ("certificate", certificate),
    ]
}

/// Stores a credential of each type below a path: `PATH/value`, `PATH/json`, and so on.
pub(crate) async fn every_type(server: &Server, path: &str) {
    server.set_value(&format!("{path}/value"), "v").await;
    let json = json!({"k": [1, "ä"]});
    server.stored(&format!("{path}/json"), "json", json).await;
    for (credential_type, parameters) in generatable() {
        let name = format!("{path}/{credential_type}");
        server.generated(&name, credential_type, parameters).await;
    }
}

/// Returns the versions in the response to a query by name.
pub(crate) fn versions_in(response: &Response) -> Vec<Value> {
    response.json()["data"].as_array().unwrap().clone()
}

/// Returns the keys of an object, in order.
pub(crate) fn fields(json: &Value) -> Vec<&str> {
    json.as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

pub(crate) fn id(version: &Value) -> String {
    version["id"].as_str().unwrap().to_owned()
}
