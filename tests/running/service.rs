//! The server as a service: its notifications to a service manager, and its systemd unit.

use std::{
    fs::{self, File},
    os::unix::net::UnixDatagram,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use keywright_harness::{
    Commanded, Text, compiled_plugins, ended, is_available, key_file, server_program, signal,
};
use reqwest::{Certificate, ClientBuilder};
use tempfile::TempDir;

use crate::layout::{Layout, example, packaged, packaging, set_mode};

#[tokio::test(flavor = "multi_thread")]
async fn the_service_manager_is_notified_of_each_state() {
    let layout = Layout::new();
    layout.write_configuration(&with_compiled_plugins(&layout));
    let mut service = Service::start(&layout, Command::new(server_program()));
    let address = address_in(&service.notified("READY=1"));
    assert_eq!(health(&address).await, "{\"status\":\"UP\"}");
    service.notified("WATCHDOG=1");
    service.notified("WATCHDOG=1");
    service.signal("HUP");
    service.notified("WATCHDOG=1");
    assert_eq!(health(&address).await, "{\"status\":\"UP\"}");
    service.signal("TERM");
    service.notified("STOPPING=1");
    assert!(service.end().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_does_not_wait_for_plugins_being_reloaded() {
    let layout = Layout::new();
    let text = with_compiled_plugins(&layout);
    layout.write_configuration(&text);
    let mut service = Service::start(&layout, Command::new(server_program()));
    service.notified("READY=1");

    // The component is a named pipe. Reading it blocks until the test closes the other end.
    let unfinished = layout.path("run/unfinished.wasm");
    let made = Command::new("mkfifo").arg(&unfinished).status().unwrap();
    assert!(made.success());
    let generator = format!(
        "[generators.unfinished]\ncomponent = \"{}\"\n[plugins]",
        unfinished.display()
    );
    layout.write_configuration(&text.replacen("[plugins]", &generator, 1));
    service.signal("HUP");
    let written = opened_by_the_server(unfinished);
    service.signal("TERM");
    service.notified("STOPPING=1");
    assert!(service.end().success());
    drop(written);

    let database = layout.path("var/lib/keywright/keywright.db");
    assert!(database.is_file());
    // SQLite removes the other files of a database when it is closed.
    assert!(!database.with_extension("db-wal").exists());
}

/// Opens the write end of a pipe, once the server has opened the read end.
pub(crate) fn opened_by_the_server(pipe: PathBuf) -> File {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(File::options().write(true).open(pipe)));
    let opened = receiver.recv_timeout(OPENED_WITHIN);
    opened.unwrap().unwrap()
}

/// Adapts the example to this machine, with plugins compiled by other tests.
pub(crate) fn with_compiled_plugins(layout: &Layout) -> String {
    let cache = format!("cache_directory = \"{}\" #", compiled_plugins().display());
    on_free_ports(&layout.example()).replacen("cache_directory =", &cache, 1)
}

/// Replaces the addresses with loopback addresses, with ports chosen by the system.
pub(crate) fn on_free_ports(text: &str) -> String {
    let text = text.replacen("0.0.0.0:8844", "127.0.0.1:0", 1);
    text.replacen("127.0.0.1:9001", "127.0.0.1:0", 1)
}

/// Returns the address in the notification of readiness.
pub(crate) fn address_in(message: &str) -> String {
    let status = message
        .lines()
        .find_map(|line| line.strip_prefix("STATUS=listening on "));
    status
        .unwrap_or_else(|| panic!("no address in {message}"))
        .to_owned()
}

pub(crate) async fn health(address: &str) -> String {
    let authority = fs::read(key_file("ca.pem")).unwrap();
    // Installing the provider again has no effect.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = ClientBuilder::new()
        .tls_certs_only([Certificate::from_pem(&authority).unwrap()])
        .build()
        .unwrap();
    let request = client.get(format!("https://{address}/health"));
    request.send().await.unwrap().text().await.unwrap()
}

/// Maximum time for the server to read a component.
const OPENED_WITHIN: Duration = Duration::from_mins(10);

/// A server started as a service.
pub(crate) struct Service {
    child: Child,
    socket: UnixDatagram,
    log: PathBuf,
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
        let output = File::create(&log).unwrap();
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

    /// Waits for a notification. Returns the notifications that were received with it.
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

    pub(crate) fn process_id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits until the server exits.
    pub(crate) fn end(mut self) -> ExitStatus {
        ended(&mut self.child)
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

#[test]
fn the_unit_is_valid_for_systemd() {
    if !is_available("systemd-analyze") {
        return;
    }
    let folder = TempDir::new().unwrap();
    // The unit must refer to an existing program.
    let program = server_program().display().to_string();
    let unit = packaged("keywright.service").replace("/usr/bin/keywright", &program);
    let file = folder.path().join("keywright.service");
    fs::write(&file, unit).unwrap();
    let verified = Commanded::run("systemd-analyze", &["verify", "--man=no", &text(file)], "");
    assert!(verified.is_success(), "{verified:?}");
    assert_eq!((verified.output + &verified.errors).trim(), "");
}

#[test]
fn the_unit_restricts_the_server() {
    if !is_available("systemd-analyze") {
        return;
    }
    let unit = text(packaging().join("keywright.service"));
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let arguments = ["security", "--offline=yes", "--no-pager", &threshold, &unit];
    let assessed = Commanded::run("systemd-analyze", &arguments, "");
    assert!(assessed.is_success(), "{}", assessed.output);
}

/// Maximum exposure of the service, in tenths of systemd's points: 0 is the best, 100 the worst.
const EXPOSURE_MAX: u8 = 20;

#[test]
fn the_unit_fits_the_example_configuration() {
    let unit = packaged("keywright.service");
    let example = example();
    let directive = |name: &str| -> String {
        let found = unit
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found
            .unwrap_or_else(|| panic!("{name} is not in the unit"))
            .to_owned()
    };
    let setting = |name: &str| -> u64 {
        let line = example.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let files: u64 = directive("LimitNOFILE").parse().unwrap();
    let (_, others_text) = unit
        .split_once("# More than server.connections_max plus ")
        .unwrap();
    let (others_text, _) = others_text.split_once(".\n").unwrap();
    let others: u64 = others_text.parse().unwrap();
    assert!(others >= OTHER_FILES);
    assert!(files >= setting("connections_max") + others);
    for (folder, directive) in [
        ("/var/lib/", directive("StateDirectory")),
        ("/var/log/", directive("LogsDirectory")),
        ("/etc/", directive("ConfigurationDirectory")),
    ] {
        let paths = example.match_indices(folder).map(|(at, _)| &example[at..]);
        for path in paths.filter(|path| !path.starts_with(&format!("{folder}{directive},"))) {
            assert!(path.starts_with(&format!("{folder}{directive}/")), "{path}");
        }
    }
    assert_eq!(directive("OOMPolicy"), "continue");
    let (name, source) = directive("LoadCredential")
        .split_once(':')
        .map(|(name, source)| (name.to_owned(), source.to_owned()))
        .unwrap();
    example.assert_contains(&format!(
        "file = \"/run/credentials/keywright.service/{name}\""
    ));
    example.assert_contains(&source);
}

/// Open files other than client connections: three for each of the twenty default database connections, and 256.
const OTHER_FILES: u64 = 20 * 3 + 256;

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}
