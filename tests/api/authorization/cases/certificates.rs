//! Requests about certificates and their CAs.

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    super::world::{
        Thing::{Authority, Nested, Signed},
        World,
    },
    Before, Case, DATA, DELETE, IT, Lacking, READ, Request, USUAL, WRITE, get, send,
};
use crate::given::QUICK_KEY;

/// Returns all cases.
pub(super) fn all() -> Vec<Case> {
    [authorities(), bulk(), certificates()]
        .into_iter()
        .flatten()
        .collect()
}

/// Cases that name a CA, or whose certificate a CA has signed.
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
        // No caller may read the CA here.
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

fn of_certificate(world: &World, name: &str, what: &str) -> String {
    format!("/api/v1/certificates/{}/{what}", world.certificate_id(name))
}

/// Generates a certificate signed by the CA.
fn sign(world: &World, name: &str, authority: &str) -> Request {
    let parameters = json!({
        "common_name": "changed", "key_type": QUICK_KEY, "ca": world.name(authority),
    });
    let body = json!({
        "name": world.name(name), "type": "certificate", "mode": "overwrite", "parameters": parameters,
    });
    send(Method::POST, DATA, body)
}

/// Sets a certificate that the CA has signed.
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
