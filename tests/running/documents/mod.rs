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

use document::Document;

#[test]
fn the_readme_is_correct() {
    replay("README.md");
}

#[test]
fn the_operator_guide_is_correct() {
    replay("host/server/OPERATING.md");
}

#[test]
fn the_migration_guide_is_correct() {
    replay("host/server/MIGRATING.md");
}

#[test]
fn the_guide_for_plugin_authors_is_correct() {
    replay("plugins/README.md");
}

/// Blocks without a language, or with an unknown one, would not be tested.
#[test]
fn every_block_in_the_documents_has_a_tested_language() {
    for name in DOCUMENTS {
        for block in Document::read(name).blocks {
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

const DOCUMENTS: [&str; 9] = [
    "README.md",
    "host/README.md",
    "host/docs/architecture.md",
    "host/docs/decisions/storage.md",
    "host/server/IDENTITY_PROVIDERS.md",
    "host/server/OPERATING.md",
    "host/server/MIGRATING.md",
    "plugins/README.md",
    "plugins/SHIPPED.md",
];
