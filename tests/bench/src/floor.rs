//! A minimal server that performs every step of a read by name and nothing else: the lowest cost that the real server can reach.

use std::{
    cell::RefCell,
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
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
use rusqlite::{Connection, OpenFlags, Result as SqliteResult};

use crate::{
    Outcome,
    reference_server::{CONTENT_TYPE, ROUTE},
    server::READ_NAME,
};

/// Verifies the token, queries the permission and the version in one transaction, decrypts the version, and writes an audit event
/// before it responds.
pub(crate) struct Floor {
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
