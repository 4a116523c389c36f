//! Secrets in any field of any type occur in no log line, audit event, error or database file.

mod audit;
mod errors;
mod measurements;
mod places;
mod stored;
mod tokens;

use serde_json::Value;
use uuid::Uuid;

use crate::hexadecimal::hexadecimal;

/// Unique texts that only occur where the server repeats its input.
#[derive(Default)]
struct Canaries {
    planted: Vec<(String, String)>,
}

impl Canaries {
    /// Creates a text for this field.
    fn plant(&mut self, place: &str) -> String {
        let text = format!("canary{}", Uuid::new_v4().simple());
        self.watch(place, &text);
        text
    }

    /// Adds a secret that the server generated.
    fn watch(&mut self, place: &str, secret: &str) {
        self.planted.push((place.to_owned(), secret.to_owned()));
    }

    /// Adds all secrets in a generated value: passwords, hashes, and each line of a private key.
    fn watch_made(&mut self, place: &str, value: &Value) {
        for member in ["password", "password_hash"] {
            if let Some(secret) = value.get(member).and_then(Value::as_str) {
                self.watch(&format!("{place}, {member}"), secret);
            }
        }
        if let Some(password) = value.as_str() {
            self.watch(place, password);
        }
        if let Some(key) = value.get("private_key").and_then(Value::as_str) {
            for line in key.lines().filter(|line| line.len() == 64) {
                self.watch(&format!("{place}, private key"), line);
            }
        }
    }

    /// Asserts that a text contains no canary, neither literally nor in hexadecimal.
    #[track_caller]
    fn assert_absent(&self, from: &str, text: &str) {
        for (place, secret) in &self.planted {
            let hexadecimal = hexadecimal(secret.as_bytes());
            assert!(
                !text.contains(secret.as_str()),
                "the canary of {place} is in {from}"
            );
            assert!(
                !text.contains(&hexadecimal),
                "the canary of {place} is in {from}, encoded"
            );
        }
    }
}
