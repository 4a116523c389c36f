//! Logging in and out, and the state kept between runs.

mod documents;
mod login;
mod logout;
mod mutual_tls;
mod openid;
mod provider;
mod renewal;
mod settings;
mod token;
mod user;

use std::{fs, os::unix::fs::PermissionsExt};

use keywright_harness::Shell;
use serde_json::{Value, json};

use crate::stub::{Asked, Reply};

/// The stored session.
fn session(shell: &Shell) -> Option<Value> {
    let file = shell.file(".config/keywright/session.json");
    let text = fs::read_to_string(file).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// Stores a session, as `keywright login` does.
fn keep(shell: &Shell, session: &Value) {
    keep_text(shell, session.to_string().as_bytes());
}

/// Overwrites the stored session with a text.
fn keep_text(shell: &Shell, text: &[u8]) {
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("session.json");
    fs::write(&file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// The responses of an identity provider next to the API: a UAA without a discovery document. Tokens are numbered.
fn provider(asked: &Asked, before: usize, url: &str) -> Option<Reply> {
    if asked.line.starts_with("GET") && asked.line.contains("/.well-known/") {
        return Some(Reply::new(404, ""));
    }
    let body = match asked.line.as_str() {
        "GET /info" => {
            json!({"auth-server": {"url": format!("{url}/uaa")}, "app": {"name": "x"}})
        }
        "POST /uaa/oauth/token" => {
            json!({"access_token": format!("token-{before}"), "token_type": "bearer"})
        }
        _ => return None,
    };
    Some(Reply::new(200, &body.to_string()))
}

/// The response to an expired access token.
const EXPIRED: &str = "{\"error\":\"access_token_expired\",\"error_description\":\"it has\"}";
