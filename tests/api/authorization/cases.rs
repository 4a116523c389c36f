//! The cases of the matrix: the required permission, the initial state, and the request.

use reqwest::Method;
use serde_json::{Value, json};

use super::world::{
    Fixture::{self, Authority, Json, Nested, Password, Signed},
    SOMEONE, World,
};

/// The credential or permission that a case accesses. The case requires a permission on its name. Credentials with other names
/// are outside its folder.
pub(super) const RESOURCE: &str = "It";

/// A request, the permission it requires, and its result.
pub(super) struct Case {
    /// The name of the case, which is also part of its credentials' names.
    pub(super) name: &'static str,
    /// The operation that the caller needs on [`RESOURCE`]; `None` if authentication is enough.
    pub(super) needs: Option<&'static str>,
    /// Additional permissions of every caller.
    pub(super) given: &'static [(&'static str, &'static str)],
    /// The initial state.
    pub(super) fixtures: &'static [(&'static str, Fixture)],
    /// The preparation of each permitted request.
    pub(super) before: Before,
    pub(super) request: fn(&World) -> Request,
    /// The response status for a permitted caller.
    pub(super) status: u16,
    /// The result for a caller without permission.
    pub(super) refusal: Refusal,
}

/// The preparation of a permitted request, so that each has the same effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// [`RESOURCE`] is created again.
    Recreated,
    /// [`RESOURCE`] is deleted.
    Deleted,
    /// [`RESOURCE`] gets another version.
    Regenerated,
}

/// The result for a caller who lacks a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Refusal {
    /// 403.
    Forbidden,
    /// 404, as if the credential did not exist.
    NotFound,
    /// 404, as if the permission did not exist.
    PermissionNotFound,
    /// 404, whether or not the permission exists.
    PermissionNotAddable,
    /// 404, whether or not the path has permissions.
    PermissionsNotReadable,
    /// 404, as if the CA did not exist.
    AuthorityNotFound,
    /// A list without [`RESOURCE`].
    Hidden,
}

/// The request to send.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) body: Value,
}

impl Case {
    /// Returns the name of a credential of this case.
    pub(super) fn path_of(&self, name: &str) -> String {
        if name == RESOURCE {
            format!("/Matrix/{}/Folder/{RESOURCE}", self.name)
        } else {
            format!("/Apart/{}/{name}", self.name)
        }
    }
}

const READ: Option<&str> = Some("read");
const WRITE: Option<&str> = Some("write");
const DELETE: Option<&str> = Some("delete");

/// Default values for the fields of a case.
const USUAL: Case = Case {
    name: "",
    needs: READ,
    given: &[],
    fixtures: &[(RESOURCE, Fixture::Text)],
    before: Before::Nothing,
    request: |_| get("/version"),
    status: 200,
    refusal: Refusal::NotFound,
};

/// Returns cases for every endpoint and each permission that it needs.
pub(super) fn all() -> Vec<Case> {
    [
        reads(),
        searches(),
        writes(),
        authorities(),
        bulk(),
        certificates(),
        permissions(),
    ]
    .into_iter()
    .flatten()
    .collect()
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

// Requests about credentials of any type.

fn reads() -> Vec<Case> {
    let read = |name, request| Case {
        name,
        request,
        ..USUAL
    };
    let open = |name, request| Case {
        needs: None,
        ..read(name, request)
    };
    vec![
        read("get-by-name", |world| get(data(world, ""))),
        read("get-current", |world| get(data(world, "&current=true"))),
        read("get-versions", |world| get(data(world, "&versions=1"))),
        read("get-by-id", |world| {
            get(format!("/api/v1/data/{}", world.version_id(RESOURCE)))
        }),
        Case {
            given: &[("first", "read")],
            fixtures: &[("first", Json), (RESOURCE, Json)],
            ..read("interpolate", |world| {
                let reference = |name| json!({"credentials": {"credhub-ref": world.name(name)}});
                let body = json!({"VCAP": [reference("first"), reference(RESOURCE)]});
                send(Method::POST, "/api/v1/interpolate", body)
            })
        },
        open("key-usage", |_| get("/api/v1/key-usage")),
        open("types", |_| get("/api/v1/types")),
        open("version", |_| get("/version")),
    ]
}

fn searches() -> Vec<Case> {
    let search = |name, request| Case {
        name,
        refusal: Refusal::Hidden,
        request,
        ..USUAL
    };
    let of_certificates = |name, request| Case {
        fixtures: &[(RESOURCE, Authority)],
        ..search(name, request)
    };
    vec![
        search("find-by-path", |world| {
            get(format!("{DATA}?path={}", world.folder()))
        }),
        search("find-by-name-like", |world| {
            let folder = world.folder().to_uppercase();
            get(format!("{DATA}?name-like={folder}"))
        }),
        of_certificates("find-expiring", |world| {
            let folder = world.folder();
            get(format!("{DATA}?path={folder}&expires-within-days=3650"))
        }),
        of_certificates("find-effective", |world| {
            let query = "expires-within-days=3650&effective=true";
            get(format!("{DATA}?path={}&{query}", world.folder()))
        }),
        of_certificates("certificates", |_| get("/api/v1/certificates")),
        of_certificates("certificates-of-all-types", |_| {
            get("/api/v1/certificates?all_types=true")
        }),
    ]
}

fn writes() -> Vec<Case> {
    let write = |name, request| Case {
        name,
        needs: WRITE,
        fixtures: &[(RESOURCE, Password)],
        refusal: Refusal::Forbidden,
        request,
        ..USUAL
    };
    vec![
        write("set", |world| set(world, "password", "p")),
        Case {
            fixtures: &[],
            before: Before::Deleted,
            ..write("set-new", |world| set(world, "value", "v"))
        },
        Case {
            fixtures: &[],
            before: Before::Deleted,
            ..write("generate-new", |world| generate(world, "converge"))
        },
        write("converge", |world| generate(world, "converge")),
        write("no-overwrite", |world| generate(world, "no-overwrite")),
        write("overwrite", |world| generate(world, "overwrite")),
        write("regenerate", |world| {
            let body = json!({"name": world.name(RESOURCE)});
            send(Method::POST, "/api/v1/regenerate", body)
        }),
        write("regenerate-through-data", |world| {
            let body = json!({"name": world.name(RESOURCE), "regenerate": true});
            send(Method::POST, DATA, body)
        }),
        Case {
            name: "delete",
            needs: DELETE,
            before: Before::Recreated,
            status: 204,
            request: |world| send(Method::DELETE, data(world, ""), Value::Null),
            ..USUAL
        },
    ]
}

fn data(world: &World, query: &str) -> String {
    format!("{DATA}?name={}{query}", world.name(RESOURCE))
}

fn set(world: &World, credential_type: &str, value: &str) -> Request {
    let body = json!({"name": world.name(RESOURCE), "type": credential_type, "value": value});
    send(Method::PUT, DATA, body)
}

fn generate(world: &World, mode: &str) -> Request {
    let body = json!({"name": world.name(RESOURCE), "type": "password", "mode": mode});
    send(Method::POST, DATA, body)
}

// Requests about certificates and their CAs.

/// Returns cases that name a CA, or whose certificate a CA has signed.
fn authorities() -> Vec<Case> {
    let write = Case {
        needs: WRITE,
        given: &[("ca", "read")],
        fixtures: &[("ca", Authority), (RESOURCE, Signed("ca"))],
        refusal: Refusal::Forbidden,
        ..USUAL
    };
    let read = Case {
        given: &[("leaf", "write")],
        fixtures: &[(RESOURCE, Authority), ("leaf", Signed(RESOURCE))],
        refusal: Refusal::AuthorityNotFound,
        ..USUAL
    };
    vec![
        Case {
            name: "sign",
            request: |world| sign(world, RESOURCE, "ca"),
            ..write
        },
        Case {
            name: "sign-with",
            request: |world| sign(world, "leaf", RESOURCE),
            ..read
        },
        Case {
            name: "set-signed",
            request: |world| set_signed(world, RESOURCE, "ca"),
            ..write
        },
        Case {
            name: "set-signed-by",
            request: |world| set_signed(world, "leaf", RESOURCE),
            ..read
        },
        Case {
            name: "regenerate-signed-by",
            refusal: Refusal::NotFound,
            request: |world| {
                let body = json!({"name": world.name("leaf")});
                send(Method::POST, "/api/v1/regenerate", body)
            },
            ..read
        },
        Case {
            name: "regenerate-signed-by-through-data",
            refusal: Refusal::NotFound,
            request: |world| {
                let body = json!({"name": world.name("leaf"), "regenerate": true});
                send(Method::POST, DATA, body)
            },
            ..read
        },
        Case {
            name: "add-version-signed-by",
            request: |world| {
                let certificate = world.field("leaf", "certificate");
                let value = json!({"certificate": certificate, "ca_name": world.name(RESOURCE)});
                let target = certificate_path(world, "leaf", "versions");
                send(Method::POST, target, json!({"value": value}))
            },
            ..read
        },
    ]
}

fn bulk() -> Vec<Case> {
    let case = |name, needs, refusal| Case {
        name,
        needs,
        refusal,
        ..USUAL
    };
    vec![
        Case {
            given: &[("leaf", "write")],
            fixtures: &[(RESOURCE, Authority), ("leaf", Signed(RESOURCE))],
            request: |world| bulk_regenerate(world, RESOURCE),
            ..case("bulk-regenerate-ca", READ, Refusal::NotFound)
        },
        Case {
            given: &[("ca", "read"), (RESOURCE, "write"), ("leaf", "write")],
            fixtures: &[
                ("ca", Authority),
                (RESOURCE, Nested("ca")),
                ("leaf", Signed(RESOURCE)),
            ],
            request: |world| bulk_regenerate(world, "ca"),
            ..case("bulk-regenerate-read-intermediate", READ, Refusal::NotFound)
        },
        Case {
            given: &[("ca", "read"), (RESOURCE, "read"), ("leaf", "write")],
            fixtures: &[
                ("ca", Authority),
                (RESOURCE, Nested("ca")),
                ("leaf", Signed(RESOURCE)),
            ],
            request: |world| bulk_regenerate(world, "ca"),
            ..case(
                "bulk-regenerate-write-intermediate",
                WRITE,
                Refusal::Forbidden,
            )
        },
        Case {
            given: &[("ca", "read"), ("leaf", "write")],
            fixtures: &[
                ("ca", Authority),
                ("leaf", Signed("ca")),
                (RESOURCE, Signed("ca")),
            ],
            request: |world| bulk_regenerate(world, "ca"),
            ..case("bulk-regenerate-write-leaf", WRITE, Refusal::Forbidden)
        },
    ]
}

fn certificates() -> Vec<Case> {
    let case = |name, needs, refusal, request| Case {
        name,
        needs,
        refusal,
        request,
        fixtures: &[("ca", Authority), (RESOURCE, Signed("ca"))],
        ..USUAL
    };
    vec![
        case("certificate", READ, Refusal::NotFound, |world| {
            get(format!(
                "/api/v1/certificates?name={}",
                world.name(RESOURCE)
            ))
        }),
        case("certificate-versions", READ, Refusal::NotFound, |world| {
            get(certificate_path(world, RESOURCE, "versions"))
        }),
        // Here, no caller has read permission on the CA.
        case(
            "certificate-regenerate",
            WRITE,
            Refusal::Forbidden,
            |world| {
                let target = certificate_path(world, RESOURCE, "regenerate");
                send(Method::POST, target, json!({}))
            },
        ),
        case(
            "certificate-transitional",
            WRITE,
            Refusal::Forbidden,
            |world| {
                let target = certificate_path(world, RESOURCE, "update_transitional_version");
                send(Method::PUT, target, json!({"version": null}))
            },
        ),
        case(
            "certificate-add-version",
            WRITE,
            Refusal::Forbidden,
            |world| {
                let value = json!({"certificate": world.field(RESOURCE, "certificate")});
                let target = certificate_path(world, RESOURCE, "versions");
                send(Method::POST, target, json!({"value": value}))
            },
        ),
        Case {
            before: Before::Regenerated,
            fixtures: &[(RESOURCE, Authority)],
            ..case(
                "certificate-delete-version",
                DELETE,
                Refusal::NotFound,
                |world| {
                    let version = format!("versions/{}", world.version_id(RESOURCE));
                    let target = certificate_path(world, RESOURCE, &version);
                    send(Method::DELETE, target, Value::Null)
                },
            )
        },
    ]
}

fn certificate_path(world: &World, name: &str, what: &str) -> String {
    format!("/api/v1/certificates/{}/{what}", world.certificate_id(name))
}

/// Generates a certificate signed by the CA.
fn sign(world: &World, name: &str, authority: &str) -> Request {
    let parameters = json!({
        "common_name": "changed", "key_type": keywright_harness::QUICK_KEY, "ca": world.name(authority),
    });
    let body = json!({
        "name": world.name(name), "type": "certificate", "mode": "overwrite", "parameters": parameters,
    });
    send(Method::POST, DATA, body)
}

/// Sets a certificate that the CA has signed.
fn set_signed(world: &World, name: &str, authority: &str) -> Request {
    let value = json!({
        "certificate": world.field(name, "certificate"), "ca_name": world.name(authority),
    });
    let body = json!({"name": world.name(name), "type": "certificate", "value": value});
    send(Method::PUT, DATA, body)
}

fn bulk_regenerate(world: &World, authority: &str) -> Request {
    let body = json!({"signed_by": world.name(authority)});
    send(Method::POST, "/api/v1/bulk-regenerate", body)
}

/// Returns cases about another actor's permission on the credential's name.
fn permissions() -> Vec<Case> {
    let case = |name, needs, request| Case {
        name,
        needs: Some(needs),
        fixtures: &[(RESOURCE, Fixture::Permission)],
        refusal: Refusal::PermissionNotFound,
        request,
        ..USUAL
    };
    vec![
        case("permission", "read_acl", |world| {
            get(format!(
                "{V2}?path={}&actor={SOMEONE}",
                world.name(RESOURCE)
            ))
        }),
        case("permission-by-id", "read_acl", |world| {
            get(permission_path(world))
        }),
        Case {
            refusal: Refusal::PermissionsNotReadable,
            ..case("permission-explain", "read_acl", |world| {
                let query = format!("actor={SOMEONE}&operation=read");
                get(format!(
                    "{V2}/explain?path={}&{query}",
                    world.name(RESOURCE)
                ))
            })
        },
        Case {
            status: 201,
            refusal: Refusal::PermissionNotAddable,
            ..case("permission-add", "write_acl", |world| {
                send(
                    Method::POST,
                    V2,
                    permission_body(world, &world.fresh_actor()),
                )
            })
        },
        case("permission-replace", "write_acl", |world| {
            send(
                Method::PUT,
                permission_path(world),
                permission_body(world, SOMEONE),
            )
        }),
        case("permission-amend", "write_acl", |world| {
            send(
                Method::PATCH,
                permission_path(world),
                json!({"operations": ["write"]}),
            )
        }),
        Case {
            before: Before::Recreated,
            ..case("permission-delete", "write_acl", |world| {
                send(Method::DELETE, permission_path(world), Value::Null)
            })
        },
        Case {
            fixtures: &[(RESOURCE, Fixture::Text)],
            refusal: Refusal::NotFound,
            ..case("permissions-of-credential", "read_acl", |world| {
                get(format!("{V1}?credential_name={}", world.name(RESOURCE)))
            })
        },
        Case {
            status: 201,
            refusal: Refusal::PermissionNotAddable,
            ..case("permission-add-to-credential", "write_acl", |world| {
                let permissions = [permission_body(world, &world.fresh_actor())];
                let body =
                    json!({"credential_name": world.name(RESOURCE), "permissions": permissions});
                send(Method::POST, V1, body)
            })
        },
        Case {
            before: Before::Recreated,
            status: 204,
            ..case(
                "permission-delete-of-credential",
                "write_acl",
                delete_of_credential,
            )
        },
    ]
}

fn delete_of_credential(world: &World) -> Request {
    let query = format!("credential_name={}&actor={SOMEONE}", world.name(RESOURCE));
    send(Method::DELETE, format!("{V1}?{query}"), Value::Null)
}

fn permission_path(world: &World) -> String {
    format!("{V2}/{}", world.version_id(RESOURCE))
}

fn permission_body(world: &World, actor: &str) -> Value {
    json!({"path": world.name(RESOURCE), "actor": actor, "operations": ["read"]})
}

const V1: &str = "/api/v1/permissions";

const V2: &str = "/api/v2/permissions";
