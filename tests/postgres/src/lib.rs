//! A PostgreSQL server for tests, from Debian's package. The test run starts it, and it stops with the test run.
//!
//! ```ignore
//! let Some(server) = keywright_test_postgres::shared() else { return };
//! let url = server.new_database();
//! ```
//!
//! It listens on a socket in its own folder, and trusts every process that can open the socket. PostgreSQL refuses to run as
//! root, so root's test runs start it as the user `postgres`. It does not flush writes to disk unless a test requires it.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::unwrap_used,
    reason = "a harness ends the test when anything is wrong"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::net::TcpSocket;

/// A server that runs until this is dropped, or the process ends.
pub struct PostgresServer {
    programs: PathBuf,
    folder: PathBuf,
    keeper: Mutex<Keeper>,
    databases: AtomicU64,
    /// Holds the port that it listens on with TLS.
    reserved: OnceLock<TcpSocket>,
}

/// Returns the server that all tests of this process share, each with its own database. If PostgreSQL is not installed,
/// returns `None` and prints a message, or panics in CI.
pub fn shared() -> Option<&'static PostgresServer> {
    static SHARED: OnceLock<Option<PostgresServer>> = OnceLock::new();
    SHARED.get_or_init(PostgresServer::start).as_ref()
}

impl PostgresServer {
    /// Starts a separate server, for a test that stops it. Returns `None` if PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with("", &[])
    }

    /// Starts a server that flushes each commit to the disk, for measurements, with additional configuration lines and
    /// environment variables. Returns `None` if PostgreSQL is not installed.
    pub fn start_durable(settings: &str, environment: &[(&'static str, String)]) -> Option<Self> {
        let settings = format!("fsync = on\nfull_page_writes = on\n{settings}");
        Self::start_with(&settings, environment)
    }

    fn start_with(settings: &str, environment: &[(&'static str, String)]) -> Option<Self> {
        let Some((version, programs)) = installed() else {
            assert!(
                std::env::var_os("CI").is_none(),
                "PostgreSQL is required in CI"
            );
            // Bypasses the test harness, which captures the output of passing tests.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: PostgreSQL is not installed (Debian's package postgresql)"
            );
            return None;
        };
        let mut keeper = Keeper::start(&programs, version, settings, environment);
        let folder = PathBuf::from(keeper.response());
        keeper.run("start");
        Some(Self {
            programs,
            folder,
            keeper: Mutex::new(keeper),
            databases: AtomicU64::new(0),
            reserved: OnceLock::new(),
        })
    }

    /// Creates an empty database, and returns its URL.
    pub fn new_database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        self.run("postgres", &format!("create database {name}"));
        // For PostgreSQL 13 and 14.
        self.run(&name, "revoke create on schema public from public");
        self.url(&name)
    }

    /// Runs SQL with `psql`'s own connection, and returns the selected rows, one per line.
    pub fn run_at(&self, url: &str, sql: &str) -> String {
        self.run(database_name(url), sql)
    }

    /// Dumps a database, which may be in use, and restores it to a new database, as an operator does. Returns the new
    /// database's URL.
    pub fn dump_and_restore(&self, url: &str) -> String {
        let copy = self.new_database();
        let mut dump = Command::new(self.programs.join("pg_dump"))
            .args(["--format=custom", "--no-owner", "--dbname", url])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let restored = Command::new(self.programs.join("pg_restore"))
            .args(["--exit-on-error", "--single-transaction", "--no-owner"])
            .args(["--dbname", &copy])
            .stdin(dump.stdout.take().unwrap())
            .status()
            .unwrap();
        assert!(dump.wait().unwrap().success() && restored.success());
        copy
    }

    /// Stops the server and closes its connections.
    pub fn stop(&self) {
        self.keeper.lock().unwrap().run("stop");
    }

    /// Kills the server: it recovers from its log when it is restarted.
    pub fn crash(&self) {
        self.keeper.lock().unwrap().run("crash");
    }

    /// Suspends the server with all connections open, as if its machine hung.
    pub fn freeze(&self) {
        self.keeper.lock().unwrap().run("freeze");
    }

    /// Resumes a suspended server.
    pub fn thaw(&self) {
        self.keeper.lock().unwrap().run("thaw");
    }

    /// Restarts the server with its data.
    pub fn start_again(&self) {
        self.keeper.lock().unwrap().run("start");
    }

    /// Restarts the server with TLS on a loopback port, where the user needs this password. The certificate and its key are PEM.
    /// Returns the URL of an empty database.
    pub fn start_with_tls(&self, certificate: &str, key: &str, password: &str) -> String {
        let database = self.new_database();
        // Before version 14, passwords are stored in another format by default.
        let sql = format!(
            "set password_encryption = 'scram-sha-256'; alter user keywright password '{password}'"
        );
        self.run_at(&database, &sql);
        let port = self.reserved.get_or_init(reserved).local_addr();
        let port = port.unwrap().port();
        let in_one_line = |pem: &str| pem.trim().replace('\n', "|");
        let mut keeper = self.keeper.lock().unwrap();
        keeper.run("stop");
        keeper.run(&format!("certificate {}", in_one_line(certificate)));
        keeper.run(&format!("key {}", in_one_line(key)));
        keeper.run(&format!("listen {port}"));
        keeper.run("start");
        let name = database_name(&database);
        format!("postgres://keywright@127.0.0.1:{port}/{name}")
    }

    fn url(&self, database: &str) -> String {
        let folder = self.folder.display();
        format!("postgres:///{database}?host={folder}&user=keywright")
    }

    fn run(&self, database: &str, sql: &str) -> String {
        let output = Command::new(self.programs.join("psql"))
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
            .args(["--set=ON_ERROR_STOP=1", "--username=keywright"])
            .arg("--host")
            .arg(&self.folder)
            .args(["--dbname", database, "--command", sql])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {errors}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// The process that supervises the server, and stops it when the test process exits for any reason.
struct Keeper {
    child: Child,
    commands: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
}

impl Keeper {
    fn start(
        programs: &Path,
        version: u32,
        settings: &str,
        environment: &[(&'static str, String)],
    ) -> Self {
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
            command.args(["--", "sh"]);
            command
        } else {
            Command::new("sh")
        };
        // Uses a collation other than by bytes, if the version supports one for a whole server, because code must not rely
        // on a collation.
        let locale = if version >= ICU_VERSION_MIN {
            "--locale-provider=icu --icu-locale=en-US"
        } else {
            ""
        };
        let mut child = command
            .args(["-c", include_str!("keeper.sh"), "keeper"])
            .arg(programs)
            .arg(locale)
            .arg(settings)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            commands: child.stdin.take(),
            responses: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn run(&mut self, command: &str) {
        let commands = self.commands.as_mut().unwrap();
        writeln!(commands, "{command}").unwrap();
        let actual = self.response();
        assert_eq!(actual, "done", "PostgreSQL did not run the command");
    }

    fn response(&mut self) -> String {
        let mut line = String::new();
        self.responses.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.child.wait();
    }
}

/// Returns the newest installed version, or the requested one, and the folder of its programs.
fn installed() -> Option<(u32, PathBuf)> {
    let wanted = std::env::var(VERSION_VARIABLE).ok();
    let versions = fs::read_dir(DEBIAN_FOLDER).ok()?;
    versions
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let is_wanted = wanted.as_ref().is_none_or(|wanted| wanted == name);
            Some((name.parse().ok()?, path.join("bin"))).filter(|_| is_wanted)
        })
        .filter(|(_, programs)| programs.join("initdb").is_file())
        .max()
}

fn database_name(url: &str) -> &str {
    url.split(['/', '?']).nth(3).unwrap()
}

/// Reserves a free port of the loopback address. The socket never listens, so Linux does not assign the port to programs that
/// bind any free port. A program that sets `SO_REUSEADDR`, as PostgreSQL does, can still bind this port.
fn reserved() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(any).unwrap();
    socket
}

fn is_root() -> bool {
    let own = fs::metadata("/proc/self").expect("there is /proc");
    own.uid() == 0
}

/// Selects one of several installed versions, such as `13`.
const VERSION_VARIABLE: &str = "KEYWRIGHT_TEST_POSTGRES_VERSION";

/// The folder of the programs in Debian's packages, by version.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";

/// The first version in which a whole server can use an ICU collation.
const ICU_VERSION_MIN: u32 = 15;
