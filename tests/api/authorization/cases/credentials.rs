//! Requests about credentials of any type.

#![expect(
    clippy::indexing_slicing,
    reason = "a member that is not there is made"
)]

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    super::world::{
        Thing::{Authority, Json, Password},
        World,
    },
    Before, Case, DATA, DELETE, IT, Lacking, Request, USUAL, WRITE, get, send,
};

/// Returns all cases.
pub(super) fn all() -> Vec<Case> {
    [reads(), searches(), writes()]
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
            name: "types",
            needs: None,
            request: |_| get("/api/v1/types"),
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
        write("set", |world| set(world, "password", "p")),
        Case {
            things: &[],
            before: Before::Deleted,
            ..write("set-new", |world| set(world, "value", "v"))
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

fn data(world: &World, query: &str) -> String {
    format!("{DATA}?name={}{query}", world.name(IT))
}

fn set(world: &World, credential_type: &str, value: &str) -> Request {
    let body = json!({"name": world.name(IT), "type": credential_type, "value": value});
    send(Method::PUT, DATA, body)
}

fn generate(world: &World, mut body: Value) -> Request {
    body["name"] = json!(world.name(IT));
    body["type"] = json!("password");
    send(Method::POST, DATA, body)
}
