//! Setting a credential: `PUT /api/v1/data`.

mod certificate;
mod json;
mod keys;
mod metadata;
mod requests;
mod size;
mod text;
mod user;
