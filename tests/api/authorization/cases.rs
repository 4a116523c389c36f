//! The endpoints of the matrix: what each needs, what is there before, and what is sent.

use reqwest::Method;
use serde_json::{Value, json};

use super::world::{
    Thing::{self, Authority, Json, Nested, Password, Signed, Text},
    World,
};
use crate::given::QUICK_KEY;

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
    things: &[(IT, Text)],
    before: Before::Nothing,
    request: |_| get("/version"),
    status: 200,
    lacking: Lacking::NotFound,
};

/// Every endpoint, and each permission that it needs.
pub(super) fn all() -> Vec<Case> {
    [
        reads(),
        searches(),
        writes(),
        authorities(),
        bulk(),
        certificates(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn reads() -> Vec<Case> {
    vec![
        Case {
            name: "get-by-name",
            request: |world| get(data(world, "")),
            ..USUAL
        },
        Case {
            name: "get-current",
            request: |world| get(data(world, "&current=true")),
            ..USUAL
        },
        Case {
            name: "get-versions",
            request: |world| get(data(world, "&versions=1")),
            ..USUAL
        },
        Case {
            name: "get-by-id",
            request: |world| get(format!("/api/v1/data/{}", world.version_id(IT))),
            ..USUAL
        },
        Case {
            name: "interpolate",
            given: &[("first", "read")],
            things: &[("first", Json), (IT, Json)],
            request: |world| {
                let reference = |name| json!({"credentials": {"credhub-ref": world.name(name)}});
                let body = json!({"VCAP": [reference("first"), reference(IT)]});
                send(Method::POST, "/api/v1/interpolate", body)
            },
            ..USUAL
        },
        Case {
            name: "key-usage",
            needs: None,
            request: |_| get("/api/v1/key-usage"),
            ..USUAL
        },
        Case {
            name: "version",
            needs: None,
            request: |_| get("/version"),
            ..USUAL
        },
    ]
}

fn searches() -> Vec<Case> {
    let search = Case {
        lacking: Lacking::Hidden,
        ..USUAL
    };
    let of_certificates = |name, request| Case {
        name,
        things: &[(IT, Authority)],
        lacking: Lacking::Hidden,
        request,
        ..USUAL
    };
    vec![
        Case {
            name: "find-by-path",
            request: |world| get(format!("/api/v1/data?path={}", world.folder())),
            ..search
        },
        Case {
            name: "find-by-name-like",
            request: |world| {
                get(format!(
                    "/api/v1/data?name-like={}",
                    world.folder().to_uppercase()
                ))
            },
            ..search
        },
        of_certificates("find-expiring", |world| {
            get(format!(
                "/api/v1/data?path={}&expires-within-days=3650",
                world.folder()
            ))
        }),
        of_certificates("find-effective", |world| {
            let query = "expires-within-days=3650&effective=true";
            get(format!("/api/v1/data?path={}&{query}", world.folder()))
        }),
        of_certificates("certificates", |_| get("/api/v1/certificates")),
    ]
}

fn writes() -> Vec<Case> {
    let write = |name, request| Case {
        name,
        needs: WRITE,
        things: &[(IT, Password)],
        lacking: Lacking::Forbidden,
        request,
        ..USUAL
    };
    vec![
        write("set", |world| set(world, "password", json!("p"))),
        Case {
            things: &[],
            before: Before::Deleted,
            ..write("set-new", |world| set(world, "value", json!("v")))
        },
        Case {
            things: &[],
            before: Before::Deleted,
            ..write("generate-new", |world| generate(world, json!({})))
        },
        write("converge", |world| {
            generate(world, json!({"mode": "converge"}))
        }),
        write("no-overwrite", |world| {
            generate(world, json!({"mode": "no-overwrite"}))
        }),
        write("overwrite", |world| {
            generate(world, json!({"mode": "overwrite"}))
        }),
        write("regenerate", |world| {
            send(
                Method::POST,
                "/api/v1/regenerate",
                json!({"name": world.name(IT)}),
            )
        }),
        write("regenerate-through-data", |world| {
            send(
                Method::POST,
                DATA,
                json!({"name": world.name(IT), "regenerate": true}),
            )
        }),
        Case {
            name: "delete",
            needs: DELETE,
            before: Before::Again,
            status: 204,
            request: |world| send(Method::DELETE, data(world, ""), Value::Null),
            ..USUAL
        },
    ]
}

/// Where an authority is named, or has signed before.
fn authorities() -> Vec<Case> {
    let write = Case {
        needs: WRITE,
        given: &[("ca", "read")],
        things: &[("ca", Authority), (IT, Signed("ca"))],
        lacking: Lacking::Forbidden,
        ..USUAL
    };
    let read = Case {
        given: &[("leaf", "write")],
        things: &[(IT, Authority), ("leaf", Signed(IT))],
        lacking: Lacking::AuthorityNotFound,
        ..USUAL
    };
    vec![
        Case {
            name: "sign",
            request: |world| sign(world, IT, "ca"),
            ..write
        },
        Case {
            name: "sign-with",
            request: |world| sign(world, "leaf", IT),
            ..read
        },
        Case {
            name: "set-signed",
            request: |world| set_signed(world, IT, "ca"),
            ..write
        },
        Case {
            name: "set-signed-by",
            request: |world| set_signed(world, "leaf", IT),
            ..read
        },
        Case {
            name: "regenerate-signed-by",
            lacking: Lacking::NotFound,
            request: |world| {
                send(
                    Method::POST,
                    "/api/v1/regenerate",
                    json!({"name": world.name("leaf")}),
                )
            },
            ..read
        },
        Case {
            name: "regenerate-signed-by-through-data",
            lacking: Lacking::NotFound,
            request: |world| {
                send(
                    Method::POST,
                    DATA,
                    json!({"name": world.name("leaf"), "regenerate": true}),
                )
            },
            ..read
        },
        Case {
            name: "add-version-signed-by",
            request: |world| {
                let certificate = world.member("leaf", "certificate");
                let value = json!({"certificate": certificate, "ca_name": world.name(IT)});
                let target = of_certificate(world, "leaf", "versions");
                send(Method::POST, target, json!({"value": value}))
            },
            ..read
        },
    ]
}

fn bulk() -> Vec<Case> {
    let case = |name, needs, lacking| Case {
        name,
        needs,
        lacking,
        ..USUAL
    };
    vec![
        Case {
            given: &[("leaf", "write")],
            things: &[(IT, Authority), ("leaf", Signed(IT))],
            request: |world| bulk_regenerate(world, IT),
            ..case("bulk-of", READ, Lacking::NotFound)
        },
        Case {
            given: &[("ca", "read"), (IT, "write"), ("leaf", "write")],
            things: &[("ca", Authority), (IT, Nested("ca")), ("leaf", Signed(IT))],
            request: |world| bulk_regenerate(world, "ca"),
            ..case("bulk-through", READ, Lacking::NotFound)
        },
        Case {
            given: &[("ca", "read"), (IT, "read"), ("leaf", "write")],
            things: &[("ca", Authority), (IT, Nested("ca")), ("leaf", Signed(IT))],
            request: |world| bulk_regenerate(world, "ca"),
            ..case("bulk-nested", WRITE, Lacking::Forbidden)
        },
        Case {
            given: &[("ca", "read"), ("leaf", "write")],
            things: &[
                ("ca", Authority),
                ("leaf", Signed("ca")),
                (IT, Signed("ca")),
            ],
            request: |world| bulk_regenerate(world, "ca"),
            ..case("bulk-leaf", WRITE, Lacking::Forbidden)
        },
    ]
}

fn certificates() -> Vec<Case> {
    let case = |name, needs, lacking, request| Case {
        name,
        needs,
        lacking,
        request,
        things: &[("ca", Authority), (IT, Signed("ca"))],
        ..USUAL
    };
    vec![
        case("certificate", READ, Lacking::NotFound, |world| {
            get(format!("/api/v1/certificates?name={}", world.name(IT)))
        }),
        case("certificate-versions", READ, Lacking::NotFound, |world| {
            get(of_certificate(world, IT, "versions"))
        }),
        // Nobody may read the authority here.
        case(
            "certificate-regenerate",
            WRITE,
            Lacking::Forbidden,
            |world| {
                send(
                    Method::POST,
                    of_certificate(world, IT, "regenerate"),
                    json!({}),
                )
            },
        ),
        case(
            "certificate-transitional",
            WRITE,
            Lacking::Forbidden,
            |world| {
                let target = of_certificate(world, IT, "update_transitional_version");
                send(Method::PUT, target, json!({"version": null}))
            },
        ),
        case(
            "certificate-add-version",
            WRITE,
            Lacking::Forbidden,
            |world| {
                let value = json!({"certificate": world.member(IT, "certificate")});
                send(
                    Method::POST,
                    of_certificate(world, IT, "versions"),
                    json!({"value": value}),
                )
            },
        ),
        Case {
            before: Before::Regenerated,
            things: &[(IT, Authority)],
            ..case(
                "certificate-delete-version",
                DELETE,
                Lacking::NotFound,
                |world| {
                    let version = format!("versions/{}", world.version_id(IT));
                    send(
                        Method::DELETE,
                        of_certificate(world, IT, &version),
                        Value::Null,
                    )
                },
            )
        },
    ]
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

fn data(world: &World, query: &str) -> String {
    format!("{DATA}?name={}{query}", world.name(IT))
}

fn of_certificate(world: &World, name: &str, what: &str) -> String {
    format!("/api/v1/certificates/{}/{what}", world.certificate_id(name))
}

fn set(world: &World, credential_type: &str, value: Value) -> Request {
    let body = json!({"name": world.name(IT), "type": credential_type, "value": value});
    send(Method::PUT, DATA, body)
}

fn generate(world: &World, mut body: Value) -> Request {
    body["name"] = json!(world.name(IT));
    body["type"] = json!("password");
    send(Method::POST, DATA, body)
}

/// Generates the one, signed by the other.
fn sign(world: &World, name: &str, authority: &str) -> Request {
    let parameters = json!({
        "common_name": "changed", "key_type": QUICK_KEY, "ca": world.name(authority),
    });
    let body = json!({
        "name": world.name(name), "type": "certificate", "mode": "overwrite", "parameters": parameters,
    });
    send(Method::POST, DATA, body)
}

/// Sets the one, whose certificate the other has signed.
fn set_signed(world: &World, name: &str, authority: &str) -> Request {
    let value = json!({
        "certificate": world.member(name, "certificate"), "ca_name": world.name(authority),
    });
    let body = json!({"name": world.name(name), "type": "certificate", "value": value});
    send(Method::PUT, DATA, body)
}

fn bulk_regenerate(world: &World, authority: &str) -> Request {
    let body = json!({"signed_by": world.name(authority)});
    send(Method::POST, "/api/v1/bulk-regenerate", body)
}

const DATA: &str = "/api/v1/data";
