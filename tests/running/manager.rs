//! A service manager that starts the server and receives its notifications.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use crate::layout::{Layout, set_mode};

/// A server started as a service.
pub(crate) struct Service {
    child: Child,
    socket: UnixDatagram,
    log: std::path::PathBuf,
}

impl Service {
    /// Starts a program that becomes the server.
    pub(crate) fn start(layout: &Layout, mut program: Command) -> Self {
        let path = layout.path("run/notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        // The server may run as another user.
        set_mode(&path, 0o666);
        socket.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        let log = layout.path("run/log");
        let output = fs::File::create(&log).unwrap();
        let child = program
            .args(["serve", "--config"])
            .arg(layout.configuration())
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", "50000")
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Self { child, socket, log }
    }

    /// Waits for a notification, and returns those that were received with it.
    pub(crate) fn notified(&mut self, state: &str) -> String {
        let mut bytes = [0; 4096];
        let mut silences = 0;
        loop {
            let Ok(length) = self.socket.recv(&mut bytes) else {
                let is_running = self.child.try_wait().unwrap().is_none();
                silences += 1;
                if is_running && silences < SILENCES_MAX {
                    continue;
                }
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                panic!("no notification of {state}:\n{log}");
            };
            let message = String::from_utf8(bytes[..length].to_vec()).unwrap();
            if message.lines().any(|line| line == state) {
                return message;
            }
        }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill")
            .args(["-s", name, &id])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Waits until the server exits.
    pub(crate) fn end(mut self) -> ExitStatus {
        for _ in 0..END_POLLS_MAX {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(END_POLL);
        }
        panic!("the server did not end");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The interval between checks whether the server has exited.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The number of checks before the test fails: the plugins may have to be compiled first.
const SILENCES_MAX: u32 = 600;

const END_POLL: Duration = Duration::from_millis(10);
const END_POLLS_MAX: u32 = 9_000;
