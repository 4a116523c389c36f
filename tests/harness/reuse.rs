//! Servers that tests use one after the other, which saves most starts.

use std::{
    ops::Deref,
    path::Path,
    process::Command,
    sync::{Mutex, PoisonError},
    thread,
};

use crate::{
    Options, Server,
    server::{client, program},
};

/// The servers that no test is using.
static IDLE: Mutex<Vec<Server>> = Mutex::new(Vec::new());

/// A server for one test at a time.
pub struct ReusedServer(Option<Server>);

impl Server {
    /// Returns a server with the default options and an empty store, which earlier tests of this process may have used. It is
    /// for tests that neither stop the server nor read its log.
    pub async fn reused() -> ReusedServer {
        Self::reused_with(&Options::default()).await
    }

    /// Like [`Self::reused`], with options that several tests share. They configure no permissions.
    pub async fn reused_with(options: &Options) -> ReusedServer {
        let options = options.clone().reused();
        let idle = {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            let found = idle.iter().position(|server| server.options == options);
            found.map(|position| idle.swap_remove(position))
        };
        let Some(mut server) = idle else {
            return ReusedServer(Some(Self::start_with(&options).await));
        };
        // The connections of the previous client ended with the runtime of its test.
        server.client = client();
        server.token = server.log_in().await;
        server.set_read_only(false).await;
        server.run_sql(EMPTY_THE_STORE).await;
        server.earlier_trail_bytes += server.audit_trail().len();
        ReusedServer(Some(server))
    }
}

/// Deletes everything except the configured permissions.
const EMPTY_THE_STORE: &str = "
    delete from credential;
    delete from permission where path <> '/*'
        or actor not in ('uaa-client:developer', 'uaa-user:3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10')";

impl Deref for ReusedServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.0.as_ref().expect("a server until it is dropped")
    }
}

impl Drop for ReusedServer {
    /// Keeps the server for the next test, unless this test failed.
    fn drop(&mut self) {
        if !thread::panicking() {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            idle.extend(self.0.take());
        }
    }
}

/// Returns the command of a shell that runs a server until standard input ends, at the latest when the test process exits. Then
/// it deletes the server's folder, because idle servers are never dropped.
pub(crate) fn command(options: &Options, directory: &Path) -> Command {
    let mut command = program("sh".as_ref());
    command
        .args(["-c", r#""$@" & read -r _; kill -9 $!; rm -rf "$0""#])
        .arg(directory)
        .arg(options.server_program());
    command
}
