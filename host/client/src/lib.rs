//! Keywright as a client: a typed library for the API, and the verbs of the command line on top of it.
//!
//! # The library
//!
//! A [`Client`] speaks HTTPS with one server. It logs in by a [`Grant`] or presents a client certificate, renews its access
//! token when the server says that it has expired, and tries again, a bounded number of times, while the server is not
//! available (503), can't be connected to, or loses the connection of a request that only reads. It works with any server of
//! this API.
//!
//! ```no_run
//! use keywright_client::{Client, Grant, Secret, SetCredential};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("https://keywright.example:8844")
//!     .trusting_only(std::fs::read("ca.pem")?)
//!     .grant(Grant::ClientCredentials {
//!         client_id: "app".to_owned(),
//!         client_secret: Secret::new("app-secret".to_owned()),
//!     })
//!     .build()?;
//!
//! client
//!     .set_credential(&SetCredential::new("/app/database", "json", &json!({"port": 5432}))?)
//!     .await?;
//! let credential = client.current_version("/app/database").await?;
//! println!("{} was set at {}", credential.name, credential.version_created_at);
//! # Ok(())
//! # }
//! ```
//!
//! The same example is run by `tests/client/library.rs`.
//!
//! # Where is what
//!
//! - `client`: the connection, TLS, proxies, the login, what is tried again, and [`Error`].
//! - `api`: one file a noun, with its requests, its answers and the methods of [`Client`] that send them. A new endpoint
//!   begins there: see [`Client::current_version`] in `api/credentials.rs`.
//! - [`session`]: what is kept between two runs of the command line, and the variables and files that configure it.
//! - [`commands`]: the verbs, one file each. A new verb is a file there; `commands/mod.rs` says what it needs.
//!   [`commands::EXIT_STATUSES`] says how the program ends. SIGINT, SIGTERM and SIGHUP are listened to in one place for all
//!   verbs: the verb is dropped where it stands, and the program ends with 130.
//! - `transfer`: what export and import do, see its own documentation.
//! - `output`: JSON, YAML and tables, prompts, and what is asked before something is lost.
//! - `input`, `new_file`: texts that are read, and files that are there whole or as they were.
//!
//! Nothing of the host is used here, so the library can be used without the server.

mod api;
mod client;
pub mod commands;
mod input;
mod new_file;
mod output;
mod pem;
mod secret;
pub mod session;
mod transfer;

pub use api::{
    certificates::{
        BulkRegenerate, CertificateSummary, IssuedCredential, IssuedRecord, ListedVersion,
        RegenerateCertificate, TransitionalVersion,
    },
    credentials::{CredentialVersion, ExpiringLink, Find, FoundCredential, SetCredential},
    generation::{GenerateCredential, GenerateMode},
    operations::{KeyUsage, ServerMode},
    permissions::{AddPermission, Operation, Permission},
    rotation::{Rotation, RotationFailed, Stage, Step},
    types::{KnownType, Plugin},
};
pub use client::{
    Client, ClientBuilder, Error, Grant, LoginOptions, Loss, Refusal, Tokens, UserAction, Wait,
};
pub use keywright_json::JsonError;
pub use secret::{Secret, SecretJson};
