//! Rejected requests.

use std::{fmt::Write, os::unix::fs::symlink};

use base64::{Engine, engine::general_purpose::STANDARD};
use keywright_harness::{
    Caller, Options, Response, Server,
    mint::{Mint, present},
};
use keywright_test_postgres::PostgresServer;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(super) async fn provoke(text: &str) -> Response {
    match text {
        "could not verify the access token: could not fetch the identity provider's keys" => {
            without_provider().await
        }
        "the audit trail can't be written at present" => on_a_full_disk().await,
        "the caller makes too many requests; try again later" => beyond_the_rate().await,
        "the client certificate is not meant for client use: …" => {
            with_certificate("server_auth", ACTOR).await
        }
        "the client certificate provides no valid identity: …" => {
            with_certificate("client_auth", "app:stranger").await
        }
        "the database is not available; try again later" => without_database().await,
        "the CA and the CAs below it have signed more than 10000 credentials, …" => {
            with_too_many_signed().await
        }
        "the encryption key … is not configured" => without_its_key().await,
        "the plugin … keeps failing and is temporarily disabled" => {
            with_a_plugin_that_traps().await
        }
        "the response is too large: …" => with_unread_responses(17, 0).await,
        "the responses to this caller exceed its memory limit; …" => {
            with_unread_responses(16, 0).await
        }
        "the server has too little free memory for the response; try again later" => {
            with_unread_responses(16, 3).await
        }
        "too many plugin calls are waiting; try again later" => with_a_full_queue().await,
        text => provoke_on_a_default_server(text).await,
    }
}

async fn provoke_on_a_default_server(text: &str) -> Response {
    let server = Server::reused().await;
    server.stored("/a", "password", json!("p")).await;
    let app = server.as_client("app").await;
    match text {
        "the request has the unknown field …" => {
            let body = json!({"name": "/b", "type": "value", "value": "v", "overwrit": true});
            server.put("/api/v1/data", body).await
        }
        "the credential can't be regenerated: …" => server.regenerate("/a").await,
        "the CA … can't sign: its …" => without_private_key(&server).await,
        "the request requires an access token, or a client certificate if the server accepts one" =>
        {
            let request = server.request(Method::GET, "/api/v1/data?name=/a");
            server.send(request).await
        }
        "the access token has expired" => with_claim(&server, "exp", json!(1)).await,
        "the access token is invalid for this server" => {
            with_claim(&server, "iss", json!("https://uaa.elsewhere")).await
        }
        "the access token lacks a required scope" => {
            with_claim(&server, "scope", json!(["credhub.read"])).await
        }
        "a page of another site sent the request; …" => {
            let request = server.authorized(Method::POST, "/api/v1/data");
            let request = request.header("sec-fetch-site", "cross-site");
            server.send(request).await
        }
        "the caller may not write this credential" => {
            let body = json!({"name": "/a", "type": "password", "value": "q"});
            app.put("/api/v1/data", body).await
        }
        "the credential does not exist or the caller may not access it" => {
            app.get("/api/v1/data?name=/a").await
        }
        "the caller may not switch read-only mode: …" => {
            let on = json!({"read_only_mode": true});
            app.post("/management", on).await
        }
        "the caller may not query read-only mode from another machine: …" => {
            from_elsewhere(&server, &app).await
        }
        "the actor already has a permission on this path; change its operations instead" => {
            server.grant("/a", app.actor(), &["read"]).await;
            let body = json!({"path": "/a", "actor": app.actor(), "operations": ["write"]});
            server.post("/api/v2/permissions", body).await
        }
        "the request body must have at most … bytes" => {
            server
                .set("/b", "value", json!("v".repeat(1_048_577)))
                .await
        }
        "could not decrypt the stored value: its ciphertext was modified or moved from another record" =>
        {
            let garbled = "update credential_version set ciphertext = nonce";
            server.run_sql(garbled).await;
            server.get("/api/v1/data?name=/a").await
        }
        "the server is in read-only mode and rejects writes" => {
            let on = json!({"read_only_mode": true});
            server.post("/management", on).await.expect(200);
            server.regenerate("/a").await
        }
        text => nothing_provokes(text),
    }
}

async fn with_a_plugin_that_traps() -> Response {
    let options = Options::default()
        .hostile("", "generate = \"trap\"")
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", "1");
    let server = Server::start_with(&options).await;
    let trapped = server.generate("/a", "hostile", json!({})).await;
    trapped.expect(500);
    server.generate("/a", "hostile", json!({})).await
}

async fn with_claim(server: &Server, claim: &str, value: Value) -> Response {
    let mint = Mint::of(server).await;
    present(server, &mint.token(&mint.claims_with(claim, value))).await
}

async fn without_private_key(server: &Server) -> Response {
    let parameters = json!({"common_name": "authority", "is_ca": true});
    let whole = server.generate("/whole", "certificate", parameters).await;
    let certificate = whole.expect(200).json()["value"]["certificate"].clone();
    let value = json!({"certificate": certificate});
    server.stored("/authority", "certificate", value).await;
    let parameters = json!({"common_name": "leaf", "ca": "/authority"});
    server.generate("/leaf", "certificate", parameters).await
}

async fn with_too_many_signed() -> Response {
    let server = Server::start().await;
    server.generate_authority("/authority", None).await;
    server.generate_leaf("/leaf", "/authority").await;
    server.copy_certificate("/leaf", 10_000).await;
    server.bulk_regenerate("/authority").await
}

async fn from_elsewhere(server: &Server, caller: &Caller) -> Response {
    let client = server.client_from([127, 0, 0, 2]);
    let request = client.get(format!("{}/management", server.base_url()));
    server.send(request.bearer_auth(caller.token())).await
}

/// Calls a server with a certificate signed by its CA.
async fn with_certificate(usage: &str, unit: &str) -> Response {
    let issuer = Server::start().await;
    let parameters = json!({"common_name": "clients", "is_ca": true});
    let authority = issuer.generate("/clients", "certificate", parameters).await;
    let parameters = json!({
        "common_name": "instance",
        "ca": "/clients",
        "organization_unit": unit,
        "extended_key_usage": [usage],
    });
    let certificate = issuer.generate("/app", "certificate", parameters).await;
    let [authority, certificate] =
        [authority, certificate].map(|made| made.expect(200).json()["value"].clone());
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("clients.pem");
    std::fs::write(&file, authority["certificate"].as_str().unwrap()).unwrap();
    let settings = format!("client_authorities = \"{}\"", file.display());
    let server = Server::start_with(&Options::default().tls_settings(&settings)).await;
    let text = |field: &str| certificate[field].as_str().unwrap();
    let caller: Caller = server.as_application(unit, text("certificate"), text("private_key"));
    caller.get("/version").await
}

async fn without_provider() -> Response {
    let issuer = Server::start().await;
    let token = issuer.token().to_owned();
    let options = Options::default().identity_provider("https://127.0.0.1:1/uaa");
    let server = Server::start_with(&options).await;
    present(&server, &token).await
}

async fn on_a_full_disk() -> Response {
    let directory = TempDir::new().unwrap();
    symlink("/dev/full", directory.path().join("audit.log")).unwrap();
    let server = Server::start_in(directory, &Options::default()).await;
    // The server detects the error when it first writes an event. Later requests are refused.
    server.get("/api/v1/data?name=/a").await.expect(500);
    server.get("/api/v1/data?name=/a").await
}

async fn beyond_the_rate() -> Response {
    let options = Options::default().server_settings("requests_per_second_max = 1");
    let server = Server::start_with(&options).await;
    for _ in 0..REQUESTS_MAX {
        let response = server.get("/version").await;
        if response.status != 200 {
            return response;
        }
    }
    panic!("none of {REQUESTS_MAX} requests was rejected");
}

/// Returns the first error response to a client that leaves large responses unread, on a server with `others` such clients.
async fn with_unread_responses(versions: usize, others: usize) -> Response {
    let limits =
        "response_bytes_max = 1048576\nresponses_bytes_max = 8388608\nwrite_seconds_max = 3600";
    let server = Server::start_with(&Options::default().server_settings(limits)).await;
    for _ in 0..versions {
        let value = json!("x".repeat(62_000));
        server.stored("/large", "value", value).await;
    }
    let path = "/api/v1/data?name=/large";
    let mut unread = Vec::new();
    for number in 0..=others {
        let reader = server.as_client(&format!("reader-{number}")).await;
        server.grant("/large", reader.actor(), &["read"]).await;
        loop {
            let response = reader.get_without_reading(path).await;
            if response.status() == 200 {
                unread.push(response);
                continue;
            }
            if number == others {
                return reader.get(path).await;
            }
            break;
        }
    }
    unreachable!("the last reader is refused");
}

async fn without_database() -> Response {
    let Some(postgres) = PostgresServer::start() else {
        // PostgreSQL is not installed. `start` has printed this.
        return Response {
            status: 503,
            body: "the database is not available; try again later".to_owned(),
            ..Server::start().await.get("/version").await
        };
    };
    let url = postgres.new_database();
    let storage = format!("url = \"{url}\"");
    let server = Server::start_with(&Options::default().storage(&storage)).await;
    postgres.stop();
    server.get("/api/v1/data?name=/a").await
}

async fn without_its_key() -> Response {
    let keys = |keys: &[&str]| {
        let mut sections = "[encryption.rotation]\nenabled = false\n".to_owned();
        for (number, key) in keys.iter().enumerate() {
            let is_active = number == 0;
            writeln!(
                sections,
                "[[encryption.keys]]\nprovider = \"raw\"\nenvironment = \"{key}\"\nactive = {is_active}"
            )
            .unwrap();
        }
        Options::default()
            .without_plugins()
            .encryption(&sections)
            .environment("OLD_KEY", &STANDARD.encode([1; 32]))
            .environment("NEW_KEY", &STANDARD.encode([2; 32]))
    };
    let server = Server::start_with(&keys(&["OLD_KEY"])).await;
    server.stored("/old", "value", json!("v")).await;
    let server = Server::start_in(server.stop().await, &keys(&["NEW_KEY", "OLD_KEY"])).await;
    server.stored("/new", "value", json!("v")).await;
    let server = Server::start_in(server.stop().await, &keys(&["NEW_KEY"])).await;
    server.get("/api/v1/data?name=/old").await
}

async fn with_a_full_queue() -> Response {
    let options = Options::default().with_a_short_queue();
    let server = Server::start_with(&options).await;
    // One call runs and one waits. The server refuses the other calls.
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..4 {
        let body = json!({"name": format!("/{number}"), "type": "hostile", "parameters": {"key_length": 0}});
        let request = server.authorized(Method::POST, "/api/v1/data");
        calls.spawn(Response::to(request.body(body.to_string())));
    }
    while let Some(response) = calls.join_next().await {
        let response = response.unwrap();
        if response.status == 503 {
            return response;
        }
    }
    panic!("no call was refused");
}

const ACTOR: &str = "app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55";

/// Maximum number of requests until the server must have refused one, with a limit of one per second.
const REQUESTS_MAX: usize = 100;

/// Fails for a symptom of the guide that no test provokes.
pub(super) fn nothing_provokes(text: &str) -> ! {
    panic!("no test provokes {text:?}: correct the guide, or provoke the symptom here")
}
