//! `examples/passphrase-generator`.

use std::{collections::BTreeSet, fs};

use keywright_harness::Server;
use serde_json::json;

use super::{made, own_file};

pub(super) async fn is_a_passphrase_of_the_list(server: &Server) {
    let list = fs::read_to_string(own_file("passphrase-generator", "words.js")).unwrap();
    let words: BTreeSet<&str> = list.split('`').nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words.len(), 1_296);
    for (parameters, count, separator) in [
        (json!({}), 8, "-"),
        (json!({"words": 32, "separator": " "}), 32, " "),
        (json!({"words": 5, "separator": "~!%"}), 5, "~!%"),
    ] {
        let value = made(server, "diceware", &parameters).await;
        // One word contains a hyphen.
        let passphrase = value.as_str().unwrap().replace("yo-yo", "yo_yo");
        let chosen: Vec<String> = passphrase
            .split(separator)
            .map(|word| word.replace('_', "-"))
            .collect();
        assert_eq!(chosen.len(), count, "{value}");
        assert!(
            chosen.iter().all(|word| words.contains(word.as_str())),
            "{value}"
        );
    }
}
