//! Reading, finding and deleting credentials.

mod delete;
mod effective_expiry;
mod expiring;
mod find;
mod get;
mod get_by_id;
mod version;
