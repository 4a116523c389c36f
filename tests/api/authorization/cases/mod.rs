//! The cases of the matrix: the required permission, the initial state, and the request.

mod certificates;
mod credentials;
mod permissions;

use reqwest::Method;
use serde_json::Value;

use super::world::{Thing, World};

/// The credential of a case, on which the permission is required. Other names in a case are unrelated credentials.
pub(super) const IT: &str = "It";

/// A request, the permission it requires, and its result.
pub(super) struct Case {
    /// The name of the case, which is also part of its credentials' names.
    pub(super) name: &'static str,
    /// The operation that the caller needs on [`IT`]; `None` if authentication is enough.
    pub(super) needs: Option<&'static str>,
    /// Additional permissions of every caller.
    pub(super) given: &'static [(&'static str, &'static str)],
    /// The initial state.
    pub(super) things: &'static [(&'static str, Thing)],
    /// The preparation of each permitted request.
    pub(super) before: Before,
    pub(super) request: fn(&World) -> Request,
    /// The response status for a permitted caller.
    pub(super) status: u16,
    /// The result for a caller without permission.
    pub(super) lacking: Lacking,
}

/// The preparation that gives each request the same effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// Recreates [`IT`].
    Again,
    /// [`IT`] is deleted.
    Deleted,
    /// [`IT`] gets another version.
    Regenerated,
}

/// The result for a caller who lacks a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Lacking {
    /// 403.
    Forbidden,
    /// 404, as if the credential did not exist.
    NotFound,
    /// 404, as if the permission did not exist.
    PermissionNotFound,
    /// 404, as if the CA did not exist.
    AuthorityNotFound,
    /// A list without [`IT`].
    Hidden,
}

/// The request to send.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) body: Value,
}

impl Case {
    /// The name of a credential of this case.
    pub(super) fn path_of(&self, name: &str) -> String {
        if name == IT {
            format!("/Matrix/{}/Folder/{IT}", self.name)
        } else {
            format!("/Apart/{}/{name}", self.name)
        }
    }
}

const READ: Option<&str> = Some("read");
const WRITE: Option<&str> = Some("write");
const DELETE: Option<&str> = Some("delete");

/// A case with the usual properties.
const USUAL: Case = Case {
    name: "",
    needs: READ,
    given: &[],
    things: &[(IT, Thing::Text)],
    before: Before::Nothing,
    request: |_| get("/version"),
    status: 200,
    lacking: Lacking::NotFound,
};

/// Every endpoint, and each permission that it needs.
pub(super) fn all() -> Vec<Case> {
    let mut all = credentials::all();
    all.extend(certificates::all());
    all.extend(permissions::all());
    all
}

fn get(target: impl Into<String>) -> Request {
    send(Method::GET, target, Value::Null)
}

fn send(method: Method, target: impl Into<String>, body: Value) -> Request {
    Request {
        method,
        target: target.into(),
        body,
    }
}

const DATA: &str = "/api/v1/data";
