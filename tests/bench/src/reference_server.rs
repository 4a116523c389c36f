//! Reference servers for the cost of reads by name, with the TLS stack of the real server. One is a bare handler that
//! returns fixed bytes. The other, [`Floor`], performs every step of a read by name and nothing else, which is the lowest
//! cost that the real server can reach.

use std::{
    cell::RefCell,
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    digest::{SHA256, digest},
};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use keywright_harness::{Server, key_file};
use rusqlite::{Connection, OpenFlags, Result as SqliteResult};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::{
    load::Side,
    server::{self, READ, READ_NAME, ServerAddress},
    statistics::Outcome,
};

/// The argument that starts this program as a reference server; the server's name and a folder follow it.
pub(crate) const COMMAND: &str = "reference-server";

/// A reference server in its own process. Dropping it ends the process.
pub(crate) struct ReferenceServer {
    name: &'static str,
    child: Child,
    address: ServerAddress,
}

/// Starts all reference servers, the bare one last. They return the credential of `server`; [`Floor`] verifies its token.
pub(crate) async fn start_all(server: &Server) -> Outcome<Vec<ReferenceServer>> {
    let body = server::connect(server).await?.get(READ).await?;
    fs::write(server.directory().join(BODY), &body)?;
    fs::write(server.directory().join(TOKEN), server.token())?;
    [FLOOR, BARE]
        .into_iter()
        .map(|name| ReferenceServer::start(name, server.directory(), server.token()))
        .collect()
}

impl ReferenceServer {
    fn start(name: &'static str, folder: &Path, token: &str) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([COMMAND, name])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        Ok(Self {
            name,
            child,
            address: ServerAddress::new(line.trim().parse()?, token),
        })
    }

    pub(crate) fn side(&self) -> Side {
        Side {
            name: self.name,
            address: self.address.clone(),
            process_id: self.child.id(),
        }
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Runs the reference server with this name until standard input ends.
pub(crate) fn run(name: &str, folder: &Path) -> Outcome<()> {
    let body = fs::read(folder.join(BODY))?;
    let router = if name == FLOOR {
        let token = fs::read_to_string(folder.join(TOKEN))?;
        Floor::open(folder, &token, &body)?.router()
    } else {
        bare(Bytes::from(body))
    };
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
            println!("{}", listener.local_addr()?);
            std::io::stdout().flush()?;
            std::thread::spawn(end_with_input);
            accept(listener, router).await
        })
}

/// Responds to every read with these bytes.
fn bare(body: Bytes) -> Router {
    let handler = move || {
        let body = body.clone();
        async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], body) }
    };
    Router::new().route(ROUTE, get(handler))
}

/// Ends the process when its parent closes standard input or exits.
fn end_with_input() {
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

/// Accepts connections with the settings of the real server's listener.
async fn accept(listener: TcpListener, router: Router) -> Outcome<()> {
    let acceptor = TlsAcceptor::from(Arc::new(tls()?));
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    protocol
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX);
    let protocol = Arc::new(protocol);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(
            acceptor.clone(),
            Arc::clone(&protocol),
            router.clone(),
            stream,
        ));
    }
}

async fn serve(
    acceptor: TlsAcceptor,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    router: Router,
    stream: TcpStream,
) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let stream = acceptor.accept(stream).await?;
    protocol
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}

fn tls() -> Outcome<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_file(key_file("server.pem"))?];
    let key = PrivateKeyDer::from_pem_file(key_file("server-key.pem"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(server)
}

const HEADER_TIME_MAX: Duration = Duration::from_secs(15);
const STREAMS_PER_CONNECTION_MAX: u32 = 128;

const ROUTE: &str = "/api/v1/data";
pub(crate) const CONTENT_TYPE: &str = "application/json;charset=UTF-8";
const FLOOR: &str = "floor";
const BARE: &str = "bare";
const BODY: &str = "body.json";
const TOKEN: &str = "token";

/// Verifies the token, queries the permission and the version in one transaction, decrypts the version, and writes an audit event
/// before it responds.
struct Floor {
    /// The digest of the only valid token.
    token: Vec<u8>,
    database: PathBuf,
    key: LessSafeKey,
    audit: File,
}

thread_local! {
    static CONNECTION: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

impl Floor {
    /// Creates a database in a folder, with one credential whose value is the encrypted response body.
    pub(crate) fn open(folder: &Path, token: &str, body: &[u8]) -> Outcome<Self> {
        let database = folder.join("floor.db");
        let key = UnboundKey::new(&AES_256_GCM, &[0; 32])?;
        let key = LessSafeKey::new(key);
        let mut sealed = body.to_vec();
        key.seal_in_place_append_tag(nonce(), Aad::from(READ_NAME), &mut sealed)?;
        let connection = Connection::open(&database)?;
        connection.execute_batch(
            "pragma journal_mode = wal;
             create table permission (path text, actor text, operations integer, unique (path, actor)) strict;
             create table credential (sequence integer primary key, name text unique, newest integer) strict;
             create table version (sequence integer primary key, ciphertext blob not null) strict;
             insert into permission values ('/*', 'developer', 1);",
        )?;
        connection.execute("insert into credential values (1, ?1, 1)", [READ_NAME])?;
        connection.execute("insert into version values (1, ?1)", [sealed])?;
        let audit = OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("floor.log"))?;
        Ok(Self {
            token: digest(&SHA256, token.as_bytes()).as_ref().to_vec(),
            database,
            key,
            audit,
        })
    }

    pub(crate) fn router(self) -> Router {
        let handler =
            async |State(floor): State<Arc<Self>>, uri: Uri, headers: HeaderMap| match floor
                .read(&uri, &headers)
            {
                Ok(response) => response,
                Err(cause) => {
                    (StatusCode::INTERNAL_SERVER_ERROR, cause.to_string()).into_response()
                }
            };
        Router::new()
            .route(ROUTE, get(handler))
            .with_state(Arc::new(self))
    }

    fn read(&self, uri: &Uri, headers: &HeaderMap) -> Outcome<Response> {
        let authorization = headers.get(header::AUTHORIZATION);
        let token = authorization.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        if token
            .map(|token| digest(&SHA256, token))
            .as_ref()
            .map(AsRef::as_ref)
            != Some(&*self.token)
        {
            return Ok(StatusCode::UNAUTHORIZED.into_response());
        }
        let query = uri.query().unwrap_or_default();
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let name = pairs.find(|(key, _)| *key == "name").ok_or("no name")?.1;
        let Some(mut value) = self.permitted_version("developer", name)? else {
            return Ok(StatusCode::NOT_FOUND.into_response());
        };
        let opened = self
            .key
            .open_in_place(nonce(), Aad::from(name), &mut value)?;
        let length = opened.len();
        value.truncate(length);
        let event = format!(
            "{{\"time\":\"{}\",\"actor\":\"developer\",\"operation\":\"read\",\"name\":\"{name}\",\"status\":200}}\n",
            chrono::Utc::now().to_rfc3339()
        );
        (&self.audit).write_all(event.as_bytes())?;
        Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], value).into_response())
    }

    /// Returns the version, read in the transaction that checks the permission.
    fn permitted_version(&self, actor: &str, name: &str) -> SqliteResult<Option<Vec<u8>>> {
        CONNECTION.with_borrow_mut(|slot| {
            let connection = match slot {
                Some(connection) => connection,
                None => slot.insert(Connection::open_with_flags(
                    &self.database,
                    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
                )?),
            };
            let run = |sql| connection.prepare_cached(sql)?.execute([]);
            run("begin")?;
            let is_permitted = connection
                .prepare_cached(
                    "select 1 from permission where path in (?1, '/*', '/bench/*') and actor = ?2
                     and operations & 1 limit 1",
                )?
                .exists([name, actor])?;
            let version = if is_permitted {
                let mut statement = connection.prepare_cached(
                    "select v.ciphertext from credential c join version v on v.sequence = c.newest
                     where c.name = ?1",
                )?;
                let mut rows = statement.query([name])?;
                rows.next()?.map(|row| row.get(0)).transpose()?
            } else {
                None
            };
            run("commit")?;
            Ok(version)
        })
    }
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}
