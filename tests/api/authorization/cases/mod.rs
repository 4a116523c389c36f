//! The endpoints of the matrix: what each needs, what is there before, and what is sent.

mod certificates;
mod credentials;
mod permissions;

use reqwest::Method;
use serde_json::Value;

use super::world::{Thing, World};

/// The credential that a case is about: the one on which the permission is that is needed. Any other name in a case is
/// that of a credential that stands apart.
pub(super) const IT: &str = "It";

/// A request, what it needs, and what comes of it.
pub(super) struct Case {
    /// What it is called, which is also a part of its names.
    pub(super) name: &'static str,
    /// The operation that the caller needs on [`IT`]; none when an identity will do.
    pub(super) needs: Option<&'static str>,
    /// What every caller is granted besides.
    pub(super) given: &'static [(&'static str, &'static str)],
    /// What is there.
    pub(super) things: &'static [(&'static str, Thing)],
    /// What is done before each request that is let through.
    pub(super) before: Before,
    pub(super) request: fn(&World) -> Request,
    /// The status of the answer to one who may.
    pub(super) status: u16,
    /// What one meets who may not.
    pub(super) lacking: Lacking,
}

/// What is done so that a request has the same effect as the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// [`IT`] is made again.
    Again,
    /// [`IT`] is deleted.
    Deleted,
    /// [`IT`] gets another version.
    Regenerated,
}

/// What one meets who lacks a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Lacking {
    /// 403.
    Forbidden,
    /// 404, as if the credential were not there.
    NotFound,
    /// 404, as if the permission were not there.
    PermissionNotFound,
    /// 404, as if the authority were not there.
    AuthorityNotFound,
    /// A list without [`IT`].
    Hidden,
}

/// What is sent.
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

/// A case as most of them are.
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
