//! Requests about another actor's permission on the credential's name.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    super::world::{SOMEONE, Thing, World},
    Before, Case, IT, Lacking, Request, USUAL, get, send,
};

/// Returns all cases.
pub(super) fn all() -> Vec<Case> {
    let case = |name, needs, request| Case {
        name,
        needs: Some(needs),
        things: &[(IT, Thing::Permission)],
        lacking: Lacking::PermissionNotFound,
        request,
        ..USUAL
    };
    vec![
        case("permission", "read_acl", |world| {
            get(format!("{V2}?path={}&actor={SOMEONE}", world.name(IT)))
        }),
        case("permission-by-id", "read_acl", |world| get(one(world))),
        case("permission-explain", "read_acl", |world| {
            let query = format!("actor={SOMEONE}&operation=read");
            get(format!("{V2}/explain?path={}&{query}", world.name(IT)))
        }),
        Case {
            status: 201,
            ..case("permission-add", "write_acl", |world| {
                send(Method::POST, V2, whole(world, &world.fresh_actor()))
            })
        },
        case("permission-replace", "write_acl", |world| {
            send(Method::PUT, one(world), whole(world, SOMEONE))
        }),
        case("permission-amend", "write_acl", |world| {
            send(Method::PATCH, one(world), json!({"operations": ["write"]}))
        }),
        Case {
            before: Before::Again,
            ..case("permission-delete", "write_acl", |world| {
                send(Method::DELETE, one(world), Value::Null)
            })
        },
        Case {
            things: &[(IT, Thing::Text)],
            lacking: Lacking::NotFound,
            ..case("permissions-of-credential", "read_acl", |world| {
                get(format!("{V1}?credential_name={}", world.name(IT)))
            })
        },
        Case {
            status: 201,
            ..case("permission-add-to-credential", "write_acl", |world| {
                let permissions = [whole(world, &world.fresh_actor())];
                let body = json!({"credential_name": world.name(IT), "permissions": permissions});
                send(Method::POST, V1, body)
            })
        },
        Case {
            before: Before::Again,
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
    let query = format!("credential_name={}&actor={SOMEONE}", world.name(IT));
    send(Method::DELETE, format!("{V1}?{query}"), Value::Null)
}

fn one(world: &World) -> String {
    format!("{V2}/{}", world.version_id(IT))
}

fn whole(world: &World, actor: &str) -> Value {
    json!({"path": world.name(IT), "actor": actor, "operations": ["read"]})
}

const V1: &str = "/api/v1/permissions";

const V2: &str = "/api/v2/permissions";
