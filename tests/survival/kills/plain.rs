//! Sets, generates, regenerates and deletes credentials other than certificates.
//!
//! RSA and SSH keys are set, but never generated: generating one takes longer than a round.

use rand::{Rng, RngExt, rngs::ChaCha12Rng, seq::IndexedRandom};
use reqwest::Method;
use serde_json::{Value, json};

use super::request::{Owned, Request};

/// Returns the next request.
pub(super) fn next(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Request {
    let (last, credential_type) = *CREDENTIALS.choose(choices).unwrap();
    let name = owned.name(last);
    let count = owned.versions(&name).len();
    if count > VERSIONS_MAX || (count > 0 && choices.random_ratio(1, 12)) {
        return Request::delete(&name);
    }
    if !last.starts_with(GENERATED) {
        return set(owned, choices, &name, credential_type);
    }
    if count > 0 && choices.random_ratio(1, 3) {
        return owned.regenerate(&name, credential_type);
    }
    generate(owned, choices, &name, credential_type)
}

fn set(owned: &Owned<'_>, choices: &mut ChaCha12Rng, name: &str, credential_type: &str) -> Request {
    let text = text(choices);
    let value = match credential_type {
        "json" => json!({"text": text, "list": [1, null, {"nested": ["ä", true]}]}),
        "user" => json!({"username": format!("user of {name}"), "password": short(&text)}),
        "rsa" | "ssh" => json!({"private_key": text}),
        _ => Value::String(text),
    };
    let metadata = match choices.random_range(0..3) {
        0 => json!({"number": choices.next_u32()}),
        _ => Value::Null,
    };
    let version =
        json!({"type": credential_type, "name": name, "value": value, "metadata": metadata});
    Request::new(Method::PUT, "/api/v1/data", version.clone())
        .adds(owned, name, version)
        .answers(name)
}

fn generate(
    owned: &Owned<'_>,
    choices: &mut ChaCha12Rng,
    name: &str,
    credential_type: &str,
) -> Request {
    let mode = *["overwrite", "converge", "no-overwrite"]
        .choose(choices)
        .unwrap();
    let parameters = json!({"length": choices.random_range(20..23)});
    let body =
        json!({"name": name, "type": credential_type, "mode": mode, "parameters": parameters});
    let mut request = Request::new(Method::POST, "/api/v1/data", body).answers(name);
    let is_there = !owned.versions(name).is_empty();
    request.may_keep = is_there && mode != "overwrite";
    if is_there && mode == "no-overwrite" {
        return request;
    }
    request.adds(owned, name, json!({"type": credential_type, "name": name}))
}

/// Returns a unique text, sometimes longer than a page of the database.
fn text(choices: &mut ChaCha12Rng) -> String {
    let number = choices.next_u64();
    let length = if choices.random_ratio(1, 8) {
        choices.random_range(4_000..30_000)
    } else {
        choices.random_range(0..100)
    };
    format!("{number}{}", "x".repeat(length))
}

/// The start of a text, for values with short fields.
fn short(text: &str) -> &str {
    &text[..text.len().min(50)]
}

/// A worker's credentials of these types. Generated ones are never set, so they can always be regenerated.
const CREDENTIALS: [(&str, &str); 8] = [
    ("value", "value"),
    ("json", "json"),
    ("password", "password"),
    ("user", "user"),
    ("rsa", "rsa"),
    ("ssh", "ssh"),
    ("generated-password", "password"),
    ("generated-user", "user"),
];

const GENERATED: &str = "generated";

/// The number of versions above which a credential is deleted.
const VERSIONS_MAX: usize = 8;
