//! The harness of all tests: it starts the real server in its own process, and sends requests over HTTPS.
//!
//! ```ignore
//! let server = Server::start().await;
//! let answer = server.put("/api/v1/data", json!({"name": "/a", "type": "value", "value": "v"})).await;
//! assert_eq!(answer.status, 200);
//! ```
//!
//! Each test starts its own server, so tests share no stored data. They share one cache of compiled plugins, so that a
//! start takes a fraction of a second.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a harness ends the test when anything is wrong"
)]

mod answer;
mod application;
mod bad_plugin;
mod caller;
mod client;
mod command;
mod credentials;
mod docker_registry;
mod key_management;
mod live_tls;
mod log;
pub mod mint;
mod options;
mod permissions;
mod port;
mod process;
mod program;
mod python;
mod raw_connection;
mod recipe;
mod scrape;
mod server;
mod storage;
mod stub;
mod terminal;
mod toolchain;
mod watched;

pub use answer::Answer;
pub use application::Application;
pub use bad_plugin::BadPlugin;
pub use caller::Caller;
pub use client::Shell;
pub use command::{
    Commanded, copied_by_backup, kill_command, memory_of_command, run_command,
    run_command_with_files_up_to, run_program, run_program_into_closed_pipe,
    run_program_with_processor_seconds,
};
pub use docker_registry::{DockerRegistry, digest};
pub use key_management::KeyManagementPlugin;
pub use live_tls::{SERVER_NAME, connects, member};
pub use options::Options;
pub use port::ReservedPort;
pub use process::{ended, signal};
pub use program::{Program, is_available, tell};
pub use python::python_program;
pub use raw_connection::{RawConnection, tls_config};
pub use recipe::identity_provider_recipe;
pub use scrape::{Sample, Scrape};
pub use server::{Server, server_program};
pub use storage::{is_on_postgres, run_sql, shared_storage};
pub use stub::{Asked, Reply, Stub};
pub use terminal::Terminal;
pub use toolchain::{
    Node, client_by_toolchain, component_by_toolchain, node, toolchain_program, toolchain_python,
};

use std::path::{Path, PathBuf};

/// The workspace's root folder.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The component of a plugin or of a test guest, as `cargo xtask` builds it.
pub fn component(name: &str) -> PathBuf {
    let path = workspace()
        .join("target/components")
        .join(format!("{name}.wasm"));
    assert!(
        path.is_file(),
        "{} is missing: run `cargo xtask build-guests` first",
        path.display()
    );
    path
}

/// One of the fixed keys in `tests/keys`.
pub fn key_file(name: &str) -> PathBuf {
    workspace().join("tests/keys").join(name)
}
