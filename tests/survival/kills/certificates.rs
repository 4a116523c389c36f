//! Two authorities, one below the other, what they sign, and a certificate that was brought.
//!
//! The server adds versions to what an authority signed when the authority's flag moves (`concatenate_cas`), so one request
//! may change many certificates: it must be seen with all of its changes, or with none.

use rand::{RngExt, rngs::ChaCha12Rng, seq::IndexedRandom};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{
    records::Place,
    request::{CERTIFICATE_ID, Owned, Request, Step},
};

/// The next step.
pub(super) fn next(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    for authority in [ROOT, MIDDLE] {
        if owned.versions(&owned.name(authority)).is_empty() {
            return Step::Write(generate(owned, authority));
        }
    }
    match choices.random_range(0..10) {
        0 | 1 => rotate_root(owned, choices),
        2 => Step::Write(bulk_regenerate(owned, ROOT)),
        3 => Step::Write(bulk_regenerate(owned, MIDDLE)),
        4 | 5 => bring(owned, choices),
        6 => regenerate_authority(owned, choices),
        _ => change_leaf(owned, choices),
    }
}

/// Takes the authority at the top one step further, or one of its versions away.
fn rotate_root(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    let name = owned.name(ROOT);
    let versions = owned.versions(&name);
    let Some(ids) = ids(versions) else {
        return Step::Read(Place::Credential(name));
    };
    let flagged = versions.iter().position(is_transitional);
    if versions.len() > VERSIONS_MAX {
        let place = deletable(versions);
        let request = delete_version(owned, &name, place);
        let brings_children = flagged == Some(place);
        return Step::Write(if brings_children {
            with_children(owned, request)
        } else {
            request
        });
    }
    let request = match (flagged, choices.random_range(0..3)) {
        (None, 0 | 1) => regenerate_as_transitional(owned, &name),
        (Some(_), 0) => move_flag(owned, &name, None),
        _ if versions.len() > 1 => move_flag(owned, &name, ids.choose(choices).copied()),
        _ => move_flag(owned, &name, None),
    };
    Step::Write(with_children(owned, request))
}

/// Each certificate of the authority at the top gets a version as well, with the same certificate and key.
fn with_children(owned: &Owned<'_>, mut request: Request) -> Request {
    for (last, signer) in SIGNED {
        let name = owned.name(last);
        let Some(newest) = owned.versions(&name).first().filter(|_| signer == ROOT) else {
            continue;
        };
        let mut value = Map::new();
        for member in ["certificate", "private_key"] {
            if let Some(known) = newest["value"].get(member) {
                value.insert(member.to_owned(), known.clone());
            }
        }
        let version = json!({
            "type": "certificate", "name": name, "metadata": null, "transitional": false, "value": value,
        });
        request = request.adds(owned, &name, version);
    }
    request
}

fn regenerate_as_transitional(owned: &Owned<'_>, name: &str) -> Request {
    let body = json!({"set_as_transitional": true});
    let version = json!({"type": "certificate", "name": name, "transitional": true});
    to_certificate(Method::POST, name, "regenerate", body)
        .adds(owned, name, version)
        .answers(name)
}

/// Moves the flag to the version with this id, or to none.
fn move_flag(owned: &Owned<'_>, name: &str, id: Option<&str>) -> Request {
    let mut versions = owned.versions(name).to_vec();
    for version in &mut versions {
        let is_flagged = id.is_some() && version["id"].as_str() == id;
        version["transitional"] = Value::Bool(is_flagged);
    }
    let body = json!({"version": id});
    let mut request = to_certificate(Method::PUT, name, "update_transitional_version", body);
    request
        .changes
        .insert(Place::Credential(name.to_owned()), versions);
    request
}

/// Sets the certificate that was brought, adds a version to it, moves its flag, or deletes what is of it.
fn bring(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    let (root, name) = (owned.name(ROOT), owned.name(BROUGHT));
    let Some(certificate) = owned.versions(&root)[0]["value"].get("certificate") else {
        return Step::Read(Place::Credential(root));
    };
    let value = json!({"certificate": certificate});
    let versions = owned.versions(&name);
    let Some(ids) = ids(versions) else {
        return Step::Read(Place::Credential(name));
    };
    let is_flagged = versions.iter().any(is_transitional);
    if versions.len() > VERSIONS_MAX {
        return Step::Write(delete_version(owned, &name, deletable(versions)));
    }
    let request = match choices.random_range(0..8) {
        _ if versions.is_empty() => set(owned, &name, &value),
        0 | 1 => set(owned, &name, &value),
        2 | 3 => add_version(owned, &name, &value, !is_flagged),
        4 | 5 if versions.len() > 1 => move_flag(owned, &name, ids.choose(choices).copied()),
        6 => Request::delete(&name),
        _ => move_flag(owned, &name, None),
    };
    Step::Write(request)
}

fn set(owned: &Owned<'_>, name: &str, value: &Value) -> Request {
    let version = json!({"type": "certificate", "name": name, "value": value});
    Request::new(Method::PUT, "/api/v1/data", version.clone())
        .adds(owned, name, version)
        .answers(name)
}

fn add_version(owned: &Owned<'_>, name: &str, value: &Value, is_transitional: bool) -> Request {
    let body = json!({"value": value, "transitional": is_transitional});
    let version = json!({
        "type": "certificate", "name": name, "value": value, "transitional": is_transitional,
    });
    to_certificate(Method::POST, name, "versions", body)
        .adds(owned, name, version)
        .answers(name)
}

fn regenerate_authority(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    let name = owned.name([ROOT, MIDDLE].choose(choices).unwrap());
    shortened(owned, &name).unwrap_or_else(|| Step::Write(owned.regenerate(&name, "certificate")))
}

fn change_leaf(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    let last = LEAVES.choose(choices).unwrap();
    let name = owned.name(last);
    if let Some(step) = shortened(owned, &name) {
        return step;
    }
    let is_there = !owned.versions(&name).is_empty();
    Step::Write(match choices.random_range(0..4) {
        0 if is_there => Request::delete(&name),
        1 if is_there => owned.regenerate(&name, "certificate"),
        _ => generate(owned, last),
    })
}

/// Generates one of [`SIGNED`], or the authority at the top.
fn generate(owned: &Owned<'_>, last: &str) -> Request {
    let name = owned.name(last);
    let signer = SIGNED.iter().find(|(signed, _)| *signed == last);
    let parameters = json!({
        "common_name": last,
        "key_type": "ecdsa-p256",
        "is_ca": !LEAVES.contains(&last),
        "ca": signer.map(|(_, signer)| owned.name(signer)).unwrap_or_default(),
    });
    let body = json!({
        "name": name, "type": "certificate", "mode": "overwrite", "parameters": parameters,
    });
    let version = json!({"type": "certificate", "name": name, "generated": true});
    Request::new(Method::POST, "/api/v1/data", body)
        .adds(owned, &name, version)
        .answers(&name)
}

fn bulk_regenerate(owned: &Owned<'_>, authority: &str) -> Request {
    let body = json!({"signed_by": owned.name(authority)});
    let mut request = Request::new(Method::POST, "/api/v1/bulk-regenerate", body);
    request.may_be_refused = true;
    for (last, signer) in SIGNED {
        let name = owned.name(last);
        let is_below = authority == ROOT || signer == authority;
        if is_below && !owned.versions(&name).is_empty() {
            let version = json!({
                "type": "certificate", "name": name, "metadata": null, "transitional": false, "generated": true,
            });
            request = request.adds(owned, &name, version);
        }
    }
    request
}

/// Deletes a version where there are many; the authority at the top, whose flag may move, has a way of its own.
fn shortened(owned: &Owned<'_>, name: &str) -> Option<Step> {
    let versions = owned.versions(name);
    if versions.len() <= VERSIONS_MAX {
        return None;
    }
    if ids(versions).is_none() || name == owned.name(ROOT) {
        return Some(Step::Read(Place::Credential(name.to_owned())));
    }
    Some(Step::Write(delete_version(owned, name, versions.len() - 1)))
}

fn delete_version(owned: &Owned<'_>, name: &str, place: usize) -> Request {
    let mut versions = owned.versions(name).to_vec();
    let deleted = versions.remove(place);
    let below = format!("versions/{}", deleted["id"].as_str().unwrap());
    let mut request = to_certificate(Method::DELETE, name, &below, Value::Null);
    request
        .changes
        .insert(Place::Credential(name.to_owned()), versions);
    request
}

/// The version that is deleted where there are many: the transitional one, or else the one before the newest.
fn deletable(versions: &[Value]) -> usize {
    versions.iter().position(is_transitional).unwrap_or(1)
}

/// A request to an address below a certificate's own.
fn to_certificate(method: Method, name: &str, below: &str, body: Value) -> Request {
    let path = format!("/api/v1/certificates/{CERTIFICATE_ID}/{below}");
    let mut request = Request::new(method, path, body);
    request.certificate = Some(name.to_owned());
    request
}

fn is_transitional(version: &Value) -> bool {
    version["transitional"] == true
}

/// The ids of all versions, when all are known: those that were made with others are not told.
fn ids(versions: &[Value]) -> Option<Vec<&str>> {
    versions
        .iter()
        .map(|version| version["id"].as_str())
        .collect()
}

const ROOT: &str = "root";
const MIDDLE: &str = "middle";

/// What was set, and is signed by no stored authority.
const BROUGHT: &str = "brought";

/// What is no authority.
const LEAVES: [&str; 3] = ["leaf", "below-one", "below-two"];

/// What is signed by an authority, and by which.
const SIGNED: [(&str, &str); 4] = [
    (MIDDLE, ROOT),
    ("leaf", ROOT),
    ("below-one", MIDDLE),
    ("below-two", MIDDLE),
];

/// Of a credential with more versions, some are deleted.
const VERSIONS_MAX: usize = 5;
