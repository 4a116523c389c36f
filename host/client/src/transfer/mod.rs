//! Export and import in bulk, for which the API has no endpoints.
//!
//! | Module | Purpose |
//! |---|---|
//! | `entry` | a credential of a file: name, type, value, metadata |
//! | `node`, `core_schema` | the content of a file in either format, and the meaning of unquoted scalars |
//! | `check` | validation of entries without a server |
//! | `read` | reading entry by entry: YAML and JSON |
//! | `write` | writing entry by entry |
//! | `order` | setting CAs before the certificates that they signed, in bounded memory |
//! | `stored` | credentials of the server as entries |
//! | `export`, `import` | the two directions, with concurrent requests |
//! | `ending` | failures that end the whole run |
//! | `report`, `progress` | output during and after a run |
//!
//! Regardless of the size of a file, memory only contains the names of an export, hashes of the names of an import, and the values
//! of entries in progress.

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

pub(crate) use ending::Losses;
pub(crate) use export::{Read, read_all};
pub(crate) use format::Format;
pub(crate) use import::{ImportError, Plan, import, look_through};
pub(crate) use progress::Progress;
pub(crate) use report::Report;
pub(crate) use stored::{Authorities, ReadError, Signer, names_below};
pub(crate) use write::{BackgroundWriter, EntryWriter, ExportEntry, yaml};
