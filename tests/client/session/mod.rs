//! Logging in and out, and what is kept between two runs.

mod login;
mod logout;
mod mutual_tls;
mod provider;
mod renewal;
mod settings;

use std::{fs, os::unix::fs::PermissionsExt};

use keywright_harness::Shell;
use serde_json::{Value, json};

use crate::stub::{Asked, Reply};

/// What is kept of a login.
fn session(shell: &Shell) -> Option<Value> {
    let file = shell.file(".config/keywright/session.json");
    let text = fs::read_to_string(file).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// Keeps a login as `keywright login` does.
fn keep(shell: &Shell, session: &Value) {
    keep_text(shell, session.to_string().as_bytes());
}

/// Puts a text in the place of what is kept of a login.
fn keep_text(shell: &Shell, text: &[u8]) {
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("session.json");
    fs::write(&file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// What an identity provider beside the API answers; tokens are numbered.
fn provider(asked: &Asked, before: usize, url: &str) -> Option<Reply> {
    let body = match asked.line.as_str() {
        "GET /info" => {
            json!({"auth-server": {"url": format!("{url}/uaa")}, "app": {"name": "x"}})
        }
        "GET /uaa/info" => json!({}),
        "POST /uaa/oauth/token" => {
            json!({"access_token": format!("token-{before}"), "token_type": "bearer"})
        }
        _ => return None,
    };
    Some(Reply::new(200, &body.to_string()))
}

/// How a server answers to an access token that has expired.
const EXPIRED: &str = "{\"error\":\"access_token_expired\",\"error_description\":\"it has\"}";
