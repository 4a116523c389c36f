//! Reading, finding and deleting credentials.

mod delete;
mod expiring;
mod find;
mod get;
mod get_by_id;
mod version;
