//! Reading, finding and deleting credentials.

mod delete;
mod effective_expiry;
mod expiring;
mod find;
mod generated_by;
mod get;
mod get_by_id;
mod version;
