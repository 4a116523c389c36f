//! Secrets in any field of any type occur in no log line, audit event, error or database file.

mod audit;
mod errors;
mod measurements;
mod stored;
mod tokens;
mod traces;

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
    fn plant(&mut self, source: &str) -> String {
        let text = format!("canary{}", Uuid::new_v4().simple());
        self.watch(source, &text);
        text
    }

    /// Adds a secret that the server generated.
    fn watch(&mut self, source: &str, secret: &str) {
        self.planted.push((source.to_owned(), secret.to_owned()));
    }

    /// Adds all secrets in a generated value: passwords, hashes, and each line of a private key.
    fn watch_made(&mut self, source: &str, value: &Value) {
        for member in ["password", "password_hash"] {
            if let Some(secret) = value.get(member).and_then(Value::as_str) {
                self.watch(&format!("{source}, {member}"), secret);
            }
        }
        if let Some(password) = value.as_str() {
            self.watch(source, password);
        }
        if let Some(key) = value.get("private_key").and_then(Value::as_str) {
            for line in key.lines().filter(|line| line.len() == 64) {
                self.watch(&format!("{source}, private key"), line);
            }
        }
    }

    /// Asserts that a text contains no canary, neither literally nor in hexadecimal.
    #[track_caller]
    fn assert_absent(&self, from: &str, text: &str) {
        for (source, secret) in &self.planted {
            let hexadecimal = hexadecimal(secret.as_bytes());
            assert!(
                !text.contains(secret.as_str()),
                "the canary of {source} is in {from}"
            );
            assert!(
                !text.contains(&hexadecimal),
                "the canary of {source} is in {from}, encoded"
            );
        }
    }
}
