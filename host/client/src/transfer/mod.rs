//! Bulk export and import, which the API leaves to its clients.
//!
//! | Module | What it does |
//! |---|---|
//! | `entry` | one credential of a file: name, type, value, metadata |
//! | `node`, `core_schema` | what stands in a file, in either form, and what unquoted scalars stand for |
//! | `check` | what can be known of an entry without a server |
//! | `read` | reading entry by entry: YAML and JSON |
//! | `write` | writing entry by entry |
//! | `order` | authorities before what they signed, in bounded memory |
//! | `stored` | what the server has of a credential, as a file has it |
//! | `export`, `import` | the two ways, with several requests at once |
//! | `ending` | which failures end all of it |
//! | `report`, `progress` | what people are told meanwhile, and at the end |
//!
//! However large a file is, what is in memory are the names of an export, hashes of the names of an import, and the
//! values of those entries that are on their way.

mod check;
mod core_schema;
mod ending;
mod entry;
mod export;
mod format;
mod import;
mod node;
mod order;
mod progress;
mod read;
mod report;
mod stored;
mod write;

pub(crate) use ending::Endings;
pub(crate) use export::{Read, read_all};
pub(crate) use format::Format;
pub(crate) use import::{ImportEnded, Plan, import, look_through};
pub(crate) use progress::Progress;
pub(crate) use report::Report;
pub(crate) use stored::{Authorities, NotRead, Signer, names_below};
pub(crate) use write::{BackgroundWriter, EntryWriter, Written, yaml};
