//! The codes that clients exchange for the tokens of a login in the browser.

use std::collections::HashMap;

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use uuid::Uuid;

/// A code that was issued for a login.
pub(super) struct IssuedCode {
    pub(super) client_id: String,
    pub(super) user_id: Uuid,
    pub(super) scope: String,
    pub(super) nonce: Option<String>,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    pub(super) ends_at_seconds: i64,
}

/// The parameters with which a client exchanges a code.
pub(super) struct Exchange<'a> {
    pub(super) client_id: &'a str,
    pub(super) redirect_uri: &'a str,
    pub(super) verifier: &'a str,
}

/// The codes that have not been exchanged yet.
#[derive(Default)]
pub(super) struct IssuedCodes(Mutex<HashMap<String, IssuedCode>>);

impl IssuedCodes {
    /// Issues a code, or returns `None` if too many codes are outstanding.
    pub(super) fn issue(&self, code: IssuedCode, now_seconds: i64) -> Option<String> {
        let mut codes = self.0.lock();
        codes.retain(|_, code| code.ends_at_seconds > now_seconds);
        if codes.len() >= CODES_MAX {
            return None;
        }
        let text = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        codes.insert(text.clone(), code);
        Some(text)
    }

    /// Takes a code. A code can be exchanged once, even if the exchange fails.
    pub(super) fn take(
        &self,
        code: &str,
        exchange: &Exchange<'_>,
        now_seconds: i64,
    ) -> Option<IssuedCode> {
        let mut codes = self.0.lock();
        let issued = codes.remove(code)?;
        let challenge = digest(&SHA256, exchange.verifier.as_bytes());
        let is_valid = issued.ends_at_seconds > now_seconds
            && issued.client_id == exchange.client_id
            && issued.redirect_uri == exchange.redirect_uri
            && issued.challenge == URL_SAFE_NO_PAD.encode(challenge);
        is_valid.then_some(issued)
    }
}

/// Maximum number of codes that have not been exchanged.
const CODES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outstanding_codes_are_limited_until_they_expire() {
        let codes = IssuedCodes::default();
        let code = |ends_at_seconds| IssuedCode {
            client_id: "client".to_owned(),
            user_id: Uuid::nil(),
            scope: String::new(),
            nonce: None,
            redirect_uri: String::new(),
            challenge: String::new(),
            ends_at_seconds,
        };
        for _ in 0..CODES_MAX {
            assert!(codes.issue(code(10), 0).is_some());
        }
        assert!(codes.issue(code(10), 0).is_none());
        assert!(codes.issue(code(20), 10).is_some());
    }

    #[test]
    fn a_code_is_exchanged_once_by_its_client_until_it_expires() {
        let page = "https://a.example/callback";
        for (client_id, redirect_uri, verifier, now_seconds, is_valid) in [
            ("client", page, "verifier", 9, true),
            ("other", page, "verifier", 9, false),
            ("client", "https://b.example/callback", "verifier", 9, false),
            ("client", page, "other", 9, false),
            ("client", page, "verifier", 10, false),
        ] {
            let codes = IssuedCodes::default();
            let code = IssuedCode {
                client_id: "client".to_owned(),
                user_id: Uuid::nil(),
                scope: String::new(),
                nonce: None,
                redirect_uri: page.to_owned(),
                challenge: URL_SAFE_NO_PAD.encode(digest(&SHA256, b"verifier")),
                ends_at_seconds: 10,
            };
            let code = codes.issue(code, 0).unwrap();
            let exchange = Exchange {
                client_id,
                redirect_uri,
                verifier,
            };
            let taken = codes.take(&code, &exchange, now_seconds);
            let case = (client_id, redirect_uri, verifier, now_seconds);
            assert_eq!(taken.is_some(), is_valid, "{case:?}");
            let valid = Exchange {
                client_id: "client",
                redirect_uri: page,
                verifier: "verifier",
            };
            assert!(codes.take(&code, &valid, 9).is_none(), "{case:?}");
        }
    }
}
