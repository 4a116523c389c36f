//! Invalid settings in the section `encryption`, and their errors.

use keywright_harness::{Options, Server};

use super::{sections, with_keys, with_secrets};

#[test]
fn invalid_key_configurations_are_refused() {
    let inactive = sections(&["KEY_A", "KEY_B"]).replace("active = true", "active = false");
    let both_active = sections(&["KEY_A", "KEY_B"]).replace("active = false", "active = true");
    let kms = |lines: &str| format!("[[encryption.keys]]\nprovider = \"kms\"\n{lines}\n");
    let raw = |lines: &str| format!("[[encryption.keys]]\nprovider = \"raw\"\n{lines}\n");
    for (sections, reason) in [
        (String::new(), "missing field `encryption`"),
        (
            "[encryption]\nkeys = []".to_owned(),
            "must be active, and none is",
        ),
        (inactive, "must be active, and none is"),
        (both_active, "must be active, and several are"),
        (
            sections(&["KEY_B", "KEY_A", "KEY_A"]),
            "the encryption keys 2 and 3, counted from 1 in the order of the configuration, are the same",
        ),
        (
            sections(&["PASSWORD", "KEY_A", "PASSWORD"]),
            "the encryption keys 1 and 3,",
        ),
        (
            raw("active = true"),
            "either a file or an environment variable",
        ),
        (
            raw("file = \"a\"\nenvironment = \"KEY_A\""),
            "either a file or an environment variable",
        ),
        (
            raw("environment = \"KEYWRIGHT_TEST_ABSENT\""),
            "reading the encryption key 1: the environment variable KEYWRIGHT_TEST_ABSENT is not set",
        ),
        (
            raw("environment = \"PASSWORD\""),
            "must be 32 bytes in base64",
        ),
        (
            raw("environment = \"KEY_A\"\nsocket = \"kms.sock\""),
            "can only be set for the provider kms",
        ),
        (kms("active = true"), "needs the socket"),
        (
            kms("socket = \"kms.sock\"\nfile = \"a\""),
            "file and environment cannot be set for the provider kms",
        ),
        (
            kms("socket = \"kms.sock\"\ntrusted_authorities = \"absent.pem\""),
            "reading the CAs trusted for the key management plugin",
        ),
        (
            "[[encryption.keys]]\nprovider = \"hsm\"\n".to_owned(),
            "must be one of password, raw, kms",
        ),
    ] {
        let options = with_secrets(Options::default().encryption(&sections));
        let said = Server::refusal(&options);
        assert!(said.contains(reason), "{sections}\n{said}");
    }
}

#[tokio::test]
async fn a_short_password_is_warned_about_but_not_logged() {
    for (password, is_warned_of) in [("SHORT_PASSWORD", true), ("PASSWORD", false)] {
        let server = Server::start_with(&with_keys(&[password])).await;
        let log = server.log();
        let is_said = log.contains("an encryption password has fewer than 20 characters");
        assert_eq!(is_said, is_warned_of, "{password}");
        assert!(!log.contains("hunter2"));
    }
}

#[tokio::test]
async fn a_key_that_never_was_active_is_ignored_with_a_warning() {
    let server = Server::start_with(&with_keys(&["KEY_A", "KEY_B"])).await;
    let log = server.log();
    let warning = log
        .lines()
        .find(|line| line.contains("an encryption key is ignored until"));
    assert!(warning.is_some_and(|line| line.contains("\"encryption.key_number\":2")));
}
