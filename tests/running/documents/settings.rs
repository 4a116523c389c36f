//! The settings in the documents are valid.

use std::fs;

use super::{document::Document, documents};
use crate::layout::Layout;

#[test]
fn settings_in_the_documents_are_valid() {
    let layout = Layout::new();
    for name in ["kms-ca.pem", "tls/uaa-authority.pem"] {
        let authority = layout.path("etc/keywright/tls/ca.pem");
        fs::copy(authority, layout.path("etc/keywright").join(name)).unwrap();
    }
    let key = "b2xkIGtleSwgb2xkIGtleSwgb2xkIGtleSwgb2xkISE=";
    fs::write(layout.path("etc/keywright/old.key"), key).unwrap();
    fs::write(layout.path("etc/keywright/registry.password"), "password\n").unwrap();
    let variables = [("OLDEST_ENCRYPTION_PASSWORD", "correct horse battery staple")];
    let mut count = 0;
    for name in documents() {
        for block in Document::read(&name).blocks {
            if block.language == "toml" {
                count += 1;
                layout.write_configuration(&with(&layout, &block.text));
                let checked = layout.check(&["--no-plugins"], &variables);
                assert_eq!(
                    checked.status,
                    Some(0),
                    "{name}:{}: {checked:#?}",
                    block.line
                );
            }
        }
    }
    assert!(count > 0);
}

/// Replaces sections of the example.
fn with(layout: &Layout, sections: &str) -> String {
    let replaced: Vec<_> = sections.lines().filter_map(top_section).collect();
    let mut text = String::new();
    let mut is_kept = true;
    for line in layout.example().lines() {
        if let Some(section) = top_section(line) {
            is_kept = !replaced.contains(&section);
        }
        if is_kept {
            text.push_str(line);
            text.push('\n');
        }
    }
    let root = layout.root().display();
    let sections = sections.replace("\"/etc/", &format!("\"{root}/etc/"));
    format!("{text}\n{sections}")
}

/// Returns the top-level section that starts on a line.
fn top_section(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.trim_start_matches('[');
    name.split([']', '.']).next()
}
