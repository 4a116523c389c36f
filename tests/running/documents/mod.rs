//! Runs every command in the documents for users, and compares its output with the text below it.
//!
//! A `console` block contains commands, each after `$ `, and their output. A command without output below it must print
//! nothing. `…` matches any text in a line, and any lines if it is alone on a line. Ids, times and random values may
//! differ ([`compare`]).
//!
//! The commands of a session are run in order, by one shell, in a folder of its own. Hidden comments in the Markdown
//! start a session, and do what a reader does elsewhere:
//!
//! ```text
//! <!-- session development -->     runs the commands below after the script of this name in sessions/
//! <!-- $ command -->               runs a hidden command
//! ```

mod compare;
mod document;
mod links;
mod session;
mod settings;

pub(crate) use compare::has_line_as_shown;

use std::fs;

use document::Document;
use keywright_harness::workspace;

#[test]
fn the_readme_is_correct() {
    replay("README.md");
}

#[test]
fn the_page_on_access_is_correct() {
    replay("host/docs/operating/access.md");
}

#[test]
fn the_page_on_the_audit_trail_is_correct() {
    replay("host/docs/operating/audit.md");
}

#[test]
fn the_page_on_back_ups_is_correct() {
    replay("host/docs/operating/backup.md");
}

#[test]
fn the_page_on_certificates_is_correct() {
    replay("host/docs/operating/certificates.md");
}

#[test]
fn the_page_on_the_command_line_is_correct() {
    replay("host/docs/operating/command-line.md");
}

#[test]
fn the_page_on_configuration_is_correct() {
    replay("host/docs/operating/configure.md");
}

#[test]
fn the_page_on_encryption_keys_is_correct() {
    replay("host/docs/operating/encryption-keys.md");
}

#[test]
fn the_page_on_installation_is_correct() {
    replay("host/docs/operating/install.md");
}

#[test]
fn the_page_on_monitoring_is_correct() {
    replay("host/docs/operating/monitoring.md");
}

#[test]
fn the_page_on_plugins_is_correct() {
    replay("host/docs/operating/plugins.md");
}

#[test]
fn the_migration_guide_is_correct() {
    replay("host/docs/migrating.md");
}

#[test]
fn the_guide_for_plugin_authors_is_correct() {
    replay("plugins/README.md");
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
    ]
    .map(str::to_owned)
    .into();
    for folder in ["host/docs", "host/docs/operating", "host/docs/decisions"] {
        for file in fs::read_dir(workspace().join(folder)).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                documents.push(format!("{folder}/{name}"));
            }
        }
    }
    documents
}
