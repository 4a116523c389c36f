//! Runs every command in the documents for users, and compares its output with the text below it. Checks the links and the
//! settings in the documents, too.
//!
//! A `console` block contains commands, each after `$ `, and their output. A command without output below it must print
//! nothing. `…` matches any text in a line, and any lines if it is alone on a line. Ids, times and random values may
//! differ ([`markdown`]).
//!
//! One shell runs the commands of a session in order, in a folder of its own. Hidden comments in the Markdown start a
//! session, and run commands that a reader runs elsewhere:
//!
//! ```text
//! <!-- session development -->     runs the commands below after the script of this name in sessions/
//! <!-- $ command -->               runs a hidden command
//! ```

mod markdown;
mod session;

use std::{collections::BTreeSet, fs, path::Path};

use keywright_harness::workspace;

use crate::layout::Layout;
use markdown::Document;

pub(crate) use markdown::has_line_as_shown;

/// Declares a test for each document.
macro_rules! replayed {
    ($($test:ident: $document:literal,)*) => {
        $(#[test]
        fn $test() {
            replay($document);
        })*
    };
}

replayed! {
    the_readme_is_correct: "README.md",
    the_page_on_access_is_correct: "host/docs/operating/access.md",
    the_page_on_the_audit_trail_is_correct: "host/docs/operating/audit.md",
    the_page_on_backups_is_correct: "host/docs/operating/backup.md",
    the_page_on_certificates_is_correct: "host/docs/operating/certificates.md",
    the_page_on_the_command_line_is_correct: "host/docs/operating/command-line.md",
    the_page_on_configuration_is_correct: "host/docs/operating/configure.md",
    the_page_on_derived_credentials_is_correct: "host/docs/operating/derived.md",
    the_page_on_encryption_keys_is_correct: "host/docs/operating/encryption-keys.md",
    the_page_on_installation_is_correct: "host/docs/operating/install.md",
    the_page_on_monitoring_is_correct: "host/docs/operating/monitoring.md",
    the_page_on_plugins_is_correct: "host/docs/operating/plugins.md",
    the_migration_guide_is_correct: "host/docs/migrating.md",
    the_guide_for_plugin_authors_is_correct: "plugins/README.md",
    the_page_on_upgrades_of_plugins_is_correct: "plugins/UPGRADES.md",
}

/// Blocks without a language, or with an unknown one, would not be tested.
#[test]
fn every_block_in_the_documents_has_a_tested_language() {
    for name in documents() {
        for block in Document::read(&name).blocks {
            assert!(
                ["console", "toml", "text"].contains(&block.language.as_str()),
                "{name}:{}: {:?}",
                block.line,
                block.language
            );
        }
    }
}

fn replay(name: &str) {
    let document = Document::read(name);
    assert!(!document.sessions.is_empty(), "{name} has no session");
    for session in document.sessions {
        session::replay(name, &session);
    }
}

/// Returns the paths of the documents with commands, settings or links.
fn documents() -> Vec<String> {
    let mut documents: Vec<_> = [
        "README.md",
        "host/README.md",
        "plugins/README.md",
        "plugins/REFERENCE.md",
        "plugins/SHIPPED.md",
        "plugins/UPGRADES.md",
    ]
    .map(str::to_owned)
    .into();
    for folder in ["host/docs", "host/docs/operating", "host/docs/decisions"] {
        for file in fs::read_dir(workspace().join(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.file_name().unwrap().to_str().unwrap();
                documents.push(format!("{folder}/{name}"));
            }
        }
    }
    documents
}

#[test]
fn links_in_the_documents_are_valid() {
    let mut links = 0;
    for document in documents() {
        let text = fs::read_to_string(workspace().join(&document)).unwrap();
        for target in targets(&text) {
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() {
                workspace().join(&document)
            } else {
                workspace().join(&document).with_file_name("").join(file)
            };
            assert!(file.exists(), "{document}: {target}");
            let exists = heading.is_empty() || anchors(&file).contains(heading);
            assert!(exists, "{document}: {target}");
        }
    }
    assert!(links > 100, "{links}");
}

/// Returns the targets of the links in a text, except for other sites.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("](").skip(1);
    let targets = behind.filter_map(|behind| Some(behind.split_once(')')?.0));
    targets.filter(|target| !target.contains("://"))
}

/// Returns the anchors of the headings of a document.
fn anchors(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchors = headings.map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    });
    anchors.collect()
}

#[test]
fn settings_in_the_documents_are_valid() {
    let layout = Layout::new();
    for name in ["kms-ca.pem", "tls/uaa-authority.pem"] {
        let authority = layout.path("etc/keywright/tls/ca.pem");
        fs::copy(authority, layout.path("etc/keywright").join(name)).unwrap();
    }
    let key = "b2xkIGtleSwgb2xkIGtleSwgb2xkIGtleSwgb2xkISE=";
    fs::write(layout.path("etc/keywright/old.key"), key).unwrap();
    for name in [
        "console-client-secret",
        "database-password",
        "registry.password",
    ] {
        fs::write(layout.path("etc/keywright").join(name), "password\n").unwrap();
    }
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
