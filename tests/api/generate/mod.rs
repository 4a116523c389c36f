//! Generating a credential: `POST /api/v1/data`.

mod certificate;
mod converge;
mod deprecated_regenerate;
mod metadata;
mod modes;
mod password;
mod requests;
mod rsa;
mod ssh;
mod user;
