//! Two CAs, one below the other, certificates signed by them, and a certificate that was set.
//!
//! When a CA's transitional flag moves, the server adds versions to the certificates that it signed
//! (`concatenate_cas`). So one request may change many certificates: all of its changes must be visible, or none.

use rand::{RngExt, rngs::ChaCha12Rng, seq::IndexedRandom};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::requests::{CERTIFICATE_ID, Location, Owned, Request, Step};

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
        4 | 5 => change_set_certificate(owned, choices),
        6 => regenerate_authority(owned, choices),
        _ => change_leaf(owned, choices),
    }
}

/// Rotates the root CA by one step, or deletes one of its versions.
fn rotate_root(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    let name = owned.name(ROOT);
    let versions = owned.versions(&name);
    let Some(ids) = ids(versions) else {
        return Step::Read(Location::Credential(name));
    };
    let flagged = versions.iter().position(is_transitional);
    if versions.len() > VERSIONS_MAX {
        let location = deletable(versions);
        let request = delete_version(owned, &name, location);
        let changes_children = flagged == Some(location);
        return Step::Write(if changes_children {
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

/// Expects another version of each certificate that the root CA signed, with the same certificate and key.
fn with_children(owned: &Owned<'_>, mut request: Request) -> Request {
    for (last, signer) in SIGNED {
        let name = owned.name(last);
        let Some(newest) = owned.versions(&name).first().filter(|_| signer == ROOT) else {
            continue;
        };
        let mut value = Map::new();
        for field in ["certificate", "private_key"] {
            if let Some(known) = newest["value"].get(field) {
                value.insert(field.to_owned(), known.clone());
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
        .responds_with_newest(name)
}

/// Moves the flag to the version with this id, or removes it.
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
        .insert(Location::Credential(name.to_owned()), versions);
    request
}

/// Sets the certificate, adds a version to it, moves its flag, or deletes one of its versions.
fn change_set_certificate(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    let (root, name) = (owned.name(ROOT), owned.name(SET_CERTIFICATE));
    let Some(certificate) = owned.versions(&root)[0]["value"].get("certificate") else {
        return Step::Read(Location::Credential(root));
    };
    let value = json!({"certificate": certificate});
    let versions = owned.versions(&name);
    let Some(ids) = ids(versions) else {
        return Step::Read(Location::Credential(name));
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
        .responds_with_newest(name)
}

fn add_version(owned: &Owned<'_>, name: &str, value: &Value, is_transitional: bool) -> Request {
    let body = json!({"value": value, "transitional": is_transitional});
    let version = json!({
        "type": "certificate", "name": name, "value": value, "transitional": is_transitional,
    });
    to_certificate(Method::POST, name, "versions", body)
        .adds(owned, name, version)
        .responds_with_newest(name)
}

fn regenerate_authority(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    let name = owned.name([ROOT, MIDDLE].choose(choices).unwrap());
    delete_if_many(owned, &name)
        .unwrap_or_else(|| Step::Write(owned.regenerate(&name, "certificate")))
}

fn change_leaf(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    let last = LEAVES.choose(choices).unwrap();
    let name = owned.name(last);
    if let Some(step) = delete_if_many(owned, &name) {
        return step;
    }
    let exists = !owned.versions(&name).is_empty();
    Step::Write(match choices.random_range(0..4) {
        0 if exists => Request::delete(&name),
        1 if exists => owned.regenerate(&name, "certificate"),
        _ => generate(owned, last),
    })
}

/// Generates one of [`SIGNED`], or the root CA.
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
        .responds_with_newest(&name)
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

/// Deletes a version if there are many; the root CA, whose flag may move, is handled separately.
fn delete_if_many(owned: &Owned<'_>, name: &str) -> Option<Step> {
    let versions = owned.versions(name);
    if versions.len() <= VERSIONS_MAX {
        return None;
    }
    if ids(versions).is_none() || name == owned.name(ROOT) {
        return Some(Step::Read(Location::Credential(name.to_owned())));
    }
    Some(Step::Write(delete_version(owned, name, versions.len() - 1)))
}

fn delete_version(owned: &Owned<'_>, name: &str, location: usize) -> Request {
    let mut versions = owned.versions(name).to_vec();
    let deleted = versions.remove(location);
    let below = format!("versions/{}", deleted["id"].as_str().unwrap());
    let mut request = to_certificate(Method::DELETE, name, &below, Value::Null);
    request
        .changes
        .insert(Location::Credential(name.to_owned()), versions);
    request
}

/// Returns the position of the version to delete: the transitional version, or else the second newest.
fn deletable(versions: &[Value]) -> usize {
    versions.iter().position(is_transitional).unwrap_or(1)
}

/// Creates a request to a path below the path of a certificate.
fn to_certificate(method: Method, name: &str, below: &str, body: Value) -> Request {
    let path = format!("/api/v1/certificates/{CERTIFICATE_ID}/{below}");
    let mut request = Request::new(method, path, body);
    request.certificate = Some(name.to_owned());
    request
}

fn is_transitional(version: &Value) -> bool {
    version["transitional"] == true
}

/// Returns the ids of all versions. Returns `None` if an id is unknown, because the response to the request that added the
/// version did not contain it.
fn ids(versions: &[Value]) -> Option<Vec<&str>> {
    versions
        .iter()
        .map(|version| version["id"].as_str())
        .collect()
}

const ROOT: &str = "root";
const MIDDLE: &str = "middle";

/// A certificate that was set, and that no stored CA signed.
const SET_CERTIFICATE: &str = "set";

/// The certificates that are not CAs.
const LEAVES: [&str; 3] = ["leaf", "below-one", "below-two"];

/// The certificates signed by a CA, each with this CA.
const SIGNED: [(&str, &str); 4] = [
    (MIDDLE, ROOT),
    ("leaf", ROOT),
    ("below-one", MIDDLE),
    ("below-two", MIDDLE),
];

/// The number of versions above which some are deleted.
const VERSIONS_MAX: usize = 5;
