//! The documents for people, replayed: every command that they show is run, and must write what they show below it.
//!
//! A block of the language `console` holds commands, each behind `$ `, and below it what it writes. Where nothing stands below a
//! command, it must write nothing. `…` stands for any text in a line, and alone on a line for any lines. Ids, times and what is
//! random differ each time, and need not be left out ([`compare`]).
//!
//! The commands of a session are run one after the other, by one shell, in a folder of its own. Lines of Markdown that readers
//! do not see say where one begins, and do what a reader does elsewhere:
//!
//! ```text
//! <!-- session development -->     the commands below are run where the file of this name in sessions/ has prepared it
//! <!-- $ command -->               is run, but is not shown
//! ```

mod compare;
mod document;
mod links;
mod session;
mod settings;

pub(crate) use compare::has_line_as_shown;

use document::Document;

#[test]
fn the_readme_shows_what_is_so() {
    replay("README.md");
}

#[test]
fn the_operators_guide_shows_what_is_so() {
    replay("host/server/OPERATING.md");
}

#[test]
fn the_migration_guide_shows_what_is_so() {
    replay("host/server/MIGRATING.md");
}

#[test]
fn the_guide_for_authors_shows_what_is_so() {
    replay("plugins/README.md");
}

/// Blocks without a language, or with one that nothing here knows, would be run by nobody.
#[test]
fn every_block_of_the_documents_is_of_a_language_that_is_tested() {
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

const DOCUMENTS: [&str; 10] = [
    "README.md",
    "host/README.md",
    "host/docs/architecture.md",
    "host/docs/decisions/storage.md",
    "host/server/IDENTITY_PROVIDERS.md",
    "host/server/OPERATING.md",
    "host/server/MIGRATING.md",
    "plugins/README.md",
    "plugins/SHIPPED.md",
    "tests/README.md",
];
