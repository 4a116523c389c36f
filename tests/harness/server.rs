//! A real server in its own process.

use std::{
    fs::{self, File},
    net::IpAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use reqwest::{
    Certificate, Client, ClientBuilder, Identity, Method, RequestBuilder, header, redirect::Policy,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Caller, Options, ReservedPort, Response, key_file, mint::Mint, plugins::user_cache, programs,
    reuse, until_some,
};

/// A server that runs until it is dropped.
pub struct Server {
    child: Child,
    directory: TempDir,
    base_url: String,
    pub(crate) client: Client,
    pub(crate) token: String,
    started_in: Duration,
    pub(crate) options: Options,
    port: ReservedPort,
    /// The size of the audit trail when the current test got the server.
    pub(crate) earlier_trail_bytes: usize,
}

impl Server {
    /// Starts a server with the shipped plugins and an empty store, and logs in as a client.
    pub async fn start() -> Self {
        Self::start_with(&Options::default()).await
    }

    /// Starts a server with these options.
    pub async fn start_with(options: &Options) -> Self {
        let directory = TempDir::new().unwrap();
        Self::start_in(directory, options).await
    }

    /// Starts a server on the folder of a stopped one.
    pub async fn start_in(directory: TempDir, options: &Options) -> Self {
        let started = Self::try_start_in(directory, options).await;
        started.unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
    }

    /// Like [`Self::start_in`], for a server that may fail to start.
    ///
    /// # Errors
    /// Returns the log if the server exits before it is ready.
    pub async fn try_start_in(directory: TempDir, options: &Options) -> Result<Self, String> {
        let port = ReservedPort::any();
        let begun = Instant::now();
        let mut child = spawn(directory.path(), options, &port);
        let base_url = format!("https://127.0.0.1:{}", port.number());
        let client = client();
        if !becomes_ready(&mut child, &client, &base_url).await {
            return Err(read_log(directory.path()));
        }
        let mut server = Self {
            child,
            directory,
            base_url,
            client,
            token: String::new(),
            started_in: begun.elapsed(),
            options: options.clone(),
            port,
            earlier_trail_bytes: 0,
        };
        if options.has_own_identity_provider() {
            server.token = server.log_in().await;
        }
        Ok(server)
    }

    /// Starts another server on the same database with the same configuration. It trusts the identity provider of this
    /// server, so that tokens are valid for both.
    pub async fn start_another(&self) -> Self {
        let started = self.try_start_another().await;
        started.unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
    }

    /// Like [`Self::start_another`], for a server that may fail to start.
    pub async fn try_start_another(&self) -> Result<Self, String> {
        let options = self
            .options
            .clone()
            .storage(&self.options.shared_storage(self.directory()))
            .identity_provider(&format!("{}/identity", self.base_url));
        let mut other = Self::try_start_in(TempDir::new().unwrap(), &options).await?;
        other.token.clone_from(&self.token);
        Ok(other)
    }

    /// Starts a server that must refuse to start, and returns its output.
    pub fn refusal(options: &Options) -> String {
        let directory = TempDir::new().unwrap();
        let port = ReservedPort::any();
        let mut child = spawn(directory.path(), options, &port);
        for _ in 0..READY_POLLS_MAX {
            if let Some(status) = child.try_wait().unwrap() {
                assert!(!status.success());
                return read_log(directory.path());
            }
            std::thread::sleep(READY_POLL);
        }
        let _ = child.kill();
        panic!("the server started:\n{}", read_log(directory.path()));
    }

    /// Starts a server, kills it after this time, ready or not, and returns the folder.
    pub fn kill_while_it_starts(directory: TempDir, options: &Options, after: Duration) -> TempDir {
        let port = ReservedPort::any();
        let mut child = spawn(directory.path(), options, &port);
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
        directory
    }

    /// Returns the server's address: scheme, host and port.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the folder with the configuration, the database and the log.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns a bearer token of the development client.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the processor time that the server's process has used.
    pub fn processor_time(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.process_id());
        let text = fs::read_to_string(path).unwrap();
        // The name of the program, in parentheses, may contain spaces.
        let (_, fields) = text.rsplit_once(") ").unwrap();
        let times = fields.split(' ').skip(11).take(2);
        let ticks: u64 = times.map(|time| time.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Returns the time from starting the process to its first response.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// Returns the server's log so far.
    pub fn log(&self) -> String {
        read_log(self.directory.path())
    }

    /// Returns the contents of the audit trail's file, without the events of earlier tests.
    pub fn audit_trail(&self) -> String {
        let trail = fs::read_to_string(self.directory.path().join("audit.log")).unwrap_or_default();
        trail[self.earlier_trail_bytes..].to_owned()
    }

    /// Returns a request without a token and a body, for the test to complete.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_to(method, &format!("{}{path}", self.base_url))
    }

    /// Returns a request to any address.
    pub(crate) fn request_to(&self, method: Method, url: &str) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Returns a client that trusts the server, follows no redirection and stores no cookie.
    pub fn plain_client(&self) -> Client {
        trusting().redirect(Policy::none()).build().unwrap()
    }

    /// Like [`Self::plain_client`], with this address.
    pub fn client_from(&self, address: [u8; 4]) -> Client {
        let client = trusting().redirect(Policy::none());
        client.local_address(IpAddr::from(address)).build().unwrap()
    }

    /// Sends a request.
    pub async fn send(&self, request: RequestBuilder) -> Response {
        Response::to(request).await
    }

    /// Returns a client of the server's own identity provider that acts for itself, registered or not.
    pub async fn as_client(&self, client_id: &str) -> Caller {
        let mint = Mint::of(self).await;
        let token = mint.token(&mint.client_claims(client_id));
        self.caller(format!("uaa-client:{client_id}"), token)
    }

    /// Returns a user of the server's own identity provider, by its id, registered or not.
    pub async fn as_user(&self, user_id: &str) -> Caller {
        let mint = Mint::of(self).await;
        let token = mint.token(&mint.user_claims(user_id));
        self.caller(format!("uaa-user:{user_id}"), token)
    }

    /// Returns an application that presents this client certificate, without a token.
    pub fn as_application(&self, application_id: &str, chain_pem: &str, key_pem: &str) -> Caller {
        let actor = format!("mtls-app:{application_id}");
        let identity = format!("{chain_pem}{key_pem}");
        let identity = Identity::from_pem(identity.as_bytes()).unwrap();
        let client = trusting().identity(identity).build().unwrap();
        Caller::new(client, self.base_url.clone(), actor, None)
    }

    fn caller(&self, actor: String, token: String) -> Caller {
        let (client, base_url) = (self.client.clone(), self.base_url.clone());
        Caller::new(client, base_url, actor, Some(token))
    }

    /// Sends a GET request with the token, and with the content type that clients always send.
    pub async fn get(&self, path: &str) -> Response {
        self.send(self.authorized(Method::GET, path)).await
    }

    /// Sends a PUT request with the token and a JSON body.
    pub async fn put(&self, path: &str, body: Value) -> Response {
        self.send(self.authorized(Method::PUT, path).body(body.to_string()))
            .await
    }

    /// Sends a POST request with the token and a JSON body.
    pub async fn post(&self, path: &str, body: Value) -> Response {
        self.send(self.authorized(Method::POST, path).body(body.to_string()))
            .await
    }

    /// Sends a DELETE request with the token.
    pub async fn delete(&self, path: &str) -> Response {
        self.send(self.authorized(Method::DELETE, path)).await
    }

    /// Returns a request with the token and the content type, for the test to complete.
    pub fn authorized(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path)
            .bearer_auth(&self.token)
            .header(header::CONTENT_TYPE, "application/json")
    }

    /// Makes the server reload its TLS files, and returns the log line with the result.
    pub async fn reload_tls_files(&self) -> String {
        self.send_hangup("the TLS files").await
    }

    /// Makes the server reopen its audit trail, and returns the log line with the result.
    pub async fn reopen_audit_trail(&self) -> String {
        self.send_hangup("the audit trail").await
    }

    /// Reconfigures the server, makes it reload its plugins, and returns the log line with the result.
    pub async fn reload_plugins(&self, options: &Options) -> String {
        configure(self.directory(), options, &self.port);
        self.send_hangup("calls use").await
    }

    /// Sends SIGHUP and returns the first new log line with these words.
    async fn send_hangup(&self, words: &str) -> String {
        let matching = |log: &str| -> Vec<String> {
            let lines = log.lines().filter(|line| line.contains(words));
            lines.map(str::to_owned).collect()
        };
        let before = matching(&self.log()).len();
        self.signal("HUP");
        until_some(words, async || {
            matching(&self.log()).into_iter().nth(before)
        })
        .await
    }

    /// Sends the signal to stop, waits until the process exits, and returns the folder. Meanwhile, the client's connections
    /// are polled, so that the server can detect idle ones.
    pub async fn stop(mut self) -> TempDir {
        self.signal("TERM");
        let status = until_some("exit", async || self.child.try_wait().unwrap()).await;
        assert!(status.success(), "the server exited with {status}");
        std::mem::replace(&mut self.directory, TempDir::new().unwrap())
    }

    /// Kills the process, and returns the folder.
    pub fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.directory, TempDir::new().unwrap())
    }

    fn signal(&self, name: &str) {
        programs::signal(self.child.id(), name);
    }

    pub(crate) async fn log_in(&self) -> String {
        let form =
            "grant_type=client_credentials&client_id=developer&client_secret=developer-secret";
        let request = self
            .request(Method::POST, "/identity/oauth/token")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        let response = self.send(request).await.expect(200);
        response.json()["access_token"].as_str().unwrap().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Closes the standard input of the shell that runs a reused server. The shell kills the server.
        if self.child.stdin.take().is_none() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

const READY_POLL: Duration = Duration::from_millis(5);
/// Ten minutes: the first server compiles the components, possibly on a slow and busy machine.
const READY_POLLS_MAX: usize = 120_000;

/// Writes the configuration of a server in this folder, and returns its file.
fn configure(directory: &Path, options: &Options, port: &ReservedPort) -> PathBuf {
    let file = directory.join("keywright.toml");
    fs::write(&file, options.configuration(directory, port.number())).unwrap();
    file
}

fn spawn(directory: &Path, options: &Options, port: &ReservedPort) -> Child {
    let configuration = configure(directory, options, port);
    let log = File::create(directory.join("log")).unwrap();
    let (mut command, input) = if options.is_reused {
        (reuse::command(options, directory), Stdio::piped())
    } else {
        (program(&options.server_program()), Stdio::null())
    };
    command
        .args(["serve", "--config"])
        .arg(configuration)
        .envs(options.variables())
        .stdin(input)
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// Returns the command of a server without the tests' own environment variables, which the server would read as settings.
pub(crate) fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    command
        .env_remove("KEYWRIGHT_LOG")
        .env_remove("KEYWRIGHT_REFRESH_GOLDEN_FILES")
        // For compiled components.
        .env("XDG_CACHE_HOME", user_cache());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KEYWRIGHT_TEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the server's program: next to the running program, or one folder above in the case of tests.
pub fn server_program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            let own = std::env::current_exe().unwrap();
            let folders = own.ancestors().skip(1).take(2);
            folders
                .map(|folder| folder.join("keywright"))
                .find(|program| program.is_file())
                .expect("the server is not built: run `cargo xtask test`")
        })
        .clone()
}

/// Waits until the server responds; returns false if it has exited.
async fn becomes_ready(child: &mut Child, client: &Client, base_url: &str) -> bool {
    for _ in 0..READY_POLLS_MAX {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if client
            .get(format!("{base_url}/health"))
            .send()
            .await
            .is_ok()
        {
            return true;
        }
        tokio::time::sleep(READY_POLL).await;
    }
    panic!("the server did not become ready");
}

pub(crate) fn client() -> Client {
    trusting().build().unwrap()
}

/// Returns a client with a connection of its own, whose flow-control window has room for one byte of each response.
pub fn client_without_reading() -> Client {
    let client = trusting().http2_initial_stream_window_size(1);
    client.build().unwrap()
}

/// Returns a client that trusts the tests' servers.
pub(crate) fn trusting() -> ClientBuilder {
    // Another test of the same process may have installed it already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let authority = fs::read(key_file("ca.pem")).unwrap();
    Client::builder()
        .tls_certs_only([Certificate::from_pem(&authority).unwrap()])
        .no_proxy()
}

/// Returns the complete lines of the log. The server may be writing another.
fn read_log(directory: &Path) -> String {
    let mut log = fs::read_to_string(directory.join("log")).unwrap_or_default();
    log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
    log
}
