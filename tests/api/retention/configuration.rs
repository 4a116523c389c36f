//! Invalid settings in the section `retention`, and their errors.

use keywright_harness::{Options, Server};

#[test]
fn start_fails_with_invalid_policies() {
    let policy = |lines: &str| format!("[[retention.policies]]\n{lines}");
    for (section, words) in [
        (policy("versions_max = 1"), "missing field `path`"),
        (
            policy("path = \"/a\""),
            "versions_max, age_days_max or keep_all = true is required",
        ),
        (
            policy("path = \"/a\"\nkeep_all = false"),
            "versions_max, age_days_max or keep_all = true is required",
        ),
        (
            policy("path = \"/a\"\nkeep_all = true\nversions_max = 1"),
            "keep_all cannot be combined with versions_max or age_days_max",
        ),
        (policy("path = \"/a*\"\nversions_max = 1"), "asterisk"),
        (
            policy("path = \"\"\nversions_max = 1"),
            "a path is required",
        ),
        (
            policy("path = \"/a\"\nversions_max = 0"),
            "must be from 1 to 10000, not 0",
        ),
        (
            policy("path = \"/a\"\nversions_max = 10001"),
            "must be from 1 to 10000, not 10001",
        ),
        (
            policy("path = \"/a\"\nage_days_max = 0"),
            "must be from 1 to 36500, not 0",
        ),
        (
            policy("path = \"/a\"\nage_days_max = 36501"),
            "must be from 1 to 36500, not 36501",
        ),
        (
            policy("path = \"/a\"\nage_days_max = \"30d\""),
            "age_days_max",
        ),
        (policy("path = \"/a\"\nversions_max = -1"), "versions_max"),
        (
            policy("path = \"/a\"\nversions = 1"),
            "unknown field: found `versions`",
        ),
        (
            format!(
                "{}\n{}",
                policy("path = \"/a/*\"\nversions_max = 1"),
                policy("path = \"/A/*\"\nkeep_all = true")
            ),
            "duplicate policy for /A/*",
        ),
        (
            "[retention]\ninterval_seconds = 0".to_owned(),
            "must be from 1 to 86400, not 0",
        ),
        (
            "[retention]\ninterval_seconds = 86401".to_owned(),
            "must be from 1 to 86400, not 86401",
        ),
    ] {
        let said = Server::refusal(&Options::default().extra(&section));
        assert!(said.contains(words), "{section}: {said}");
        assert!(said.contains("retention"), "{section}: {said}");
    }
}
