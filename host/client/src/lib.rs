//! Keywright's client: a typed library for the API, and the commands on top of it.
//!
//! # The library
//!
//! A [`Client`] connects to one server over HTTPS. It logs in with a [`Grant`] or presents a client certificate, and renews its
//! access token when it has expired. It retries requests a limited number of times while the server is unavailable (503) or refuses
//! connections; it also retries a read whose connection is lost. It works with any server that implements the CredHub API.
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
//! `tests/client/library.rs` runs the same example.
//!
//! # Modules
//!
//! - `client`: the connection, TLS, proxies, the login, retries, and [`Error`].
//! - `api`: one file per noun, with the requests, the responses and the methods of [`Client`] that send them. Add new endpoints
//!   there; see [`Client::current_version`] in `api/credentials.rs`.
//! - `session`: the state that the command line keeps between runs, and the variables and files that configure it.
//! - [`commands`]: the commands. `commands/mod.rs` describes how to add one. [`commands::EXIT_STATUSES`] lists the exit
//!   statuses. One signal handler serves all commands: SIGINT, SIGTERM and SIGHUP drop the command's future, and the program
//!   exits with 130.
//! - `transfer`: export and import.
//! - `output`: JSON, YAML, tables and messages.
//! - `command_error`: the errors of commands, and the exit statuses.
//! - `input`, `new_file`: reading texts, prompts, and writing files atomically.
//!
//! Of the host's crates, the library only depends on `keywright-json`, so it can be used without the server.

mod api;
mod client;
mod command_error;
pub mod commands;
mod input;
mod new_file;
mod output;
mod secret;
mod session;
mod transfer;

pub use api::*;
pub use client::{
    Client, ClientBuilder, Error, Grant, LoginOptions, Loss, ResponseError, Tokens, UserAction,
    Wait,
};
pub use input::json_object;
pub use keywright_json::JsonError;
pub use output::{printable, printable_json};
pub use secret::{Secret, SecretJson};
pub use transfer::progress_bar;
