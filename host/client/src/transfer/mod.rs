//! Export and import in bulk, for which the API has no endpoints.
//!
//! | Module | Purpose |
//! |---|---|
//! | `entry` | a credential of a file: name, type, value, metadata; validation without a server |
//! | `node` | the content of a file in either format, and the meaning of unquoted scalars |
//! | `read` | reading entry by entry: YAML and JSON |
//! | `write`, `background_writer` | writing entry by entry, on a thread of its own |
//! | `stored` | credentials of the server as entries; reading them for an export with concurrent requests |
//! | `import` | setting credentials with concurrent requests |
//! | `order` | setting CAs before the entries that name them, in bounded memory |
//! | `abort_policy` | failures that end the whole run |
//! | `report` | output during and after a run |
//!
//! Regardless of the size of a file, memory only contains the names of an export, hashes of the names of an import, and the values
//! of entries in progress.

mod abort_policy;
mod background_writer;
mod entry;
mod import;
mod node;
mod order;
mod read;
mod report;
mod stored;
mod write;

pub(crate) use abort_policy::Losses;
pub(crate) use background_writer::BackgroundWriter;
pub(crate) use entry::Format;
pub(crate) use import::{Plan, import, scan};
pub(crate) use node::Node;
pub(crate) use report::Report;
pub use report::progress_bar;
pub(crate) use stored::{Authorities, Read, names_below, read_all};
pub(crate) use write::{EntryWriter, yaml};
