//! The harness of all tests: it starts the real server in its own process, and sends requests over HTTPS.
//!
//! ```ignore
//! let server = Server::reused().await;
//! let response = server.put("/api/v1/data", json!({"name": "/a", "type": "value", "value": "v"})).await;
//! assert_eq!(response.status, 200);
//! ```
//!
//! Each test has its own server with an empty store. Tests that only send requests reuse the servers of other tests
//! ([`Server::reused`]). Tests that stop or configure their server, or read its log, start it. They share one cache of compiled
//! plugins, so that a start takes a fraction of a second.

mod caller;
mod certificates;
mod command;
pub mod der;
mod docker_registry;
pub mod mint;
mod network;
mod observation;
mod options;
mod plugins;
mod programs;
mod requests;
mod reuse;
mod server;
mod storage;
mod stub;
mod terminal;
mod waiting;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

pub use caller::{Application, Caller, Response};
pub use certificates::{TestCertificate, authority_contents, contents};
pub use command::{
    Arguments, Commanded, Shell, copied_by_backup, kill_command, memory_of_command, run_command,
    run_command_with_files_up_to, run_program, run_program_into_closed_pipe,
    run_program_with_processor_seconds,
};
pub use docker_registry::{DockerRegistry, digest};
pub use network::{
    RawConnection, ReservedPort, SERVER_NAME, connects, field, tls_config, tls_error,
    trusted_authorities,
};
pub use observation::{Sample, Scrape};
pub use options::{Options, identity_provider_recipe};
pub use plugins::{BadPlugin, KeyManagementPlugin, compiled_plugins, release, user_cache};
pub use programs::{
    Node, client_by_toolchain, component_by_toolchain, ended, folder_of_user, is_available, node,
    npm_package, print_message, python_program, signal, toolchain_program, toolchain_python,
};
pub use requests::QUICK_KEY;
pub use reuse::ReusedServer;
pub use server::{Server, client_without_reading, server_program};
pub use storage::{is_on_postgres, run_sql, shared_storage, without_constraints};
pub use stub::{ReceivedRequest, Reply, Stub};
pub use terminal::Terminal;
pub use waiting::{until, until_some};

/// Returns the workspace's root folder.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Returns the path of the component of a plugin or of a test guest, as `cargo xtask` builds it.
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

/// Returns the names of the shipped plugins, in alphabetical order.
pub fn shipped_plugins() -> BTreeSet<String> {
    let folders = fs::read_dir(workspace().join("plugins")).unwrap();
    let crates = folders
        .map(Result::unwrap)
        .filter(|folder| folder.path().join("Cargo.toml").is_file())
        .map(|folder| folder.file_name().into_string().unwrap());
    crates.filter(|name| name != "support").collect()
}

/// Returns the path of one of the fixed keys in `tests/keys`.
pub fn key_file(name: &str) -> PathBuf {
    workspace().join("tests/keys").join(name)
}

/// Assertions that print the text if they fail.
pub trait Text {
    /// Asserts that the text contains another one.
    fn assert_contains(&self, part: &str);

    /// Asserts that the text does not contain another one.
    fn assert_lacks(&self, part: &str);
}

impl Text for str {
    #[track_caller]
    fn assert_contains(&self, part: &str) {
        assert!(self.contains(part), "{part:?} is not in {self}");
    }

    #[track_caller]
    fn assert_lacks(&self, part: &str) {
        assert!(!self.contains(part), "{part:?} is in {self}");
    }
}
