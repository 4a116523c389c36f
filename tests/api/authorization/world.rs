//! The initial state of a case.

use std::{cell::Cell, collections::BTreeMap};

use keywright_harness::Server;
use serde_json::{Value, json};

use super::cases::{Before, Case, RESOURCE, Request};

/// A credential of a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fixture {
    /// Of type value.
    Text,
    /// A permission of another actor on an unused name.
    Permission,
    Json,
    /// A generated password.
    Password,
    /// A self-signed CA.
    Authority,
    /// A CA signed by the CA of this name.
    Nested(&'static str),
    /// A certificate signed by the CA of this name.
    Signed(&'static str),
}

/// The credentials of a case, by their names in the case.
pub(super) struct World {
    names: BTreeMap<&'static str, String>,
    versions: BTreeMap<&'static str, Value>,
    certificate_ids: BTreeMap<&'static str, String>,
    actors: Cell<usize>,
}

impl World {
    /// Creates the initial state of a case.
    pub(super) async fn of(server: &Server, case: &Case) -> Self {
        let mut world = Self::empty(case, |name| case.path_of(name));
        for (name, fixture) in case.fixtures {
            world.create(server, name, *fixture).await;
        }
        world
    }

    /// Returns the same world with an absent [`RESOURCE`]: an unused name of the same length, and unknown ids.
    pub(super) fn absent(case: &Case, present: &Self) -> Self {
        let mut world = Self::empty(case, |name| match name {
            RESOURCE => {
                let mut absent = case.path_of(name);
                absent.pop();
                absent + "0"
            }
            other => case.path_of(other),
        });
        world.versions = present.versions.clone();
        world.certificate_ids = present.certificate_ids.clone();
        if let Some(version) = world.versions.get_mut(RESOURCE) {
            version["id"] = json!(NO_ID);
        }
        if let Some(id) = world.certificate_ids.get_mut(RESOURCE) {
            NO_ID.clone_into(id);
        }
        world
    }

    fn empty(case: &Case, path_of: impl Fn(&str) -> String) -> Self {
        let names = case
            .fixtures
            .iter()
            .map(|(name, _)| *name)
            .chain([RESOURCE]);
        Self {
            names: names.map(|name| (name, path_of(name))).collect(),
            versions: BTreeMap::new(),
            certificate_ids: BTreeMap::new(),
            actors: Cell::new(0),
        }
    }

    /// Prepares the state for a request.
    pub(super) async fn prepare(&mut self, server: &Server, case: &Case) {
        let name = self.name(RESOURCE).to_owned();
        match case.before {
            Before::Nothing => {}
            Before::Recreated => {
                for (name, fixture) in case.fixtures {
                    self.create(server, name, *fixture).await;
                }
            }
            Before::Deleted => {
                server.delete(&format!("/api/v1/data?name={name}")).await;
            }
            Before::Regenerated => {
                let version = server.regenerated(&name).await;
                self.versions.insert(RESOURCE, version);
            }
        }
    }

    /// Returns all versions of all credentials of the case.
    pub(super) async fn all_versions(&self, server: &Server) -> Vec<Value> {
        let mut all = Vec::new();
        for name in self.names.values() {
            all.extend(server.versions(name).await);
            let permission = format!("/api/v2/permissions?path={name}&actor={SOMEONE}");
            all.push(json!(server.get(&permission).await.body));
        }
        all
    }

    /// Returns the request of a case. It replaces `{NAME}` by the name of a credential, `{version of NAME}`, `{id of NAME}` and
    /// `{certificate of NAME}` by its ids and its certificate, and `{folder}` by the path above [`RESOURCE`].
    pub(super) fn request(&self, case: &Case) -> Request {
        let folder = self.name(RESOURCE).rsplit_once('/').unwrap().0;
        let request = case.request.replace("{folder}", folder);
        let request = request.replace("{FOLDER}", &folder.to_uppercase());
        let mut request = request.replace("{someone}", SOMEONE);
        if request.contains("{new actor}") {
            self.actors.set(self.actors.get() + 1);
            let actor = format!("{SOMEONE}-{}", self.actors.get());
            request = request.replace("{new actor}", &actor);
        }
        for (name, path) in &self.names {
            request = request.replace(&format!("{{{name}}}"), path);
        }
        for (name, id) in &self.certificate_ids {
            request = request.replace(&format!("{{id of {name}}}"), id);
        }
        for (name, version) in &self.versions {
            let id = version["id"].as_str().unwrap();
            request = request.replace(&format!("{{version of {name}}}"), id);
            let certificate = version["value"]["certificate"].to_string();
            let place = format!("{{certificate of {name}}}");
            request = request.replace(&place, &certificate);
        }
        let mut parts = request.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or("null").to_owned();
        Request {
            method: part().parse().unwrap(),
            target: part(),
            body: serde_json::from_str(&part()).unwrap(),
        }
    }

    /// Returns the name of a credential.
    pub(super) fn name(&self, name: &str) -> &str {
        &self.names[name]
    }

    async fn create(&mut self, server: &Server, name: &'static str, fixture: Fixture) {
        let path = self.name(name).to_owned();
        let certificate = |parameters| server.issued(&path, parameters);
        let version = match fixture {
            Fixture::Permission => permission(server, &path).await,
            Fixture::Text => server.set_value(&path, "v").await,
            Fixture::Json => {
                server
                    .stored(&path, "json", json!({"secret": SECRET}))
                    .await
            }
            Fixture::Password => server.generated(&path, "password", json!({})).await,
            Fixture::Authority => certificate(json!({"is_ca": true, "common_name": name})).await,
            Fixture::Nested(by) => {
                let ca = self.name(by);
                certificate(json!({"is_ca": true, "ca": ca, "common_name": name})).await
            }
            Fixture::Signed(by) => {
                certificate(json!({"ca": self.name(by), "common_name": name})).await
            }
        };
        if version["type"] == "certificate" {
            let listed = server
                .get_json(&format!("/api/v1/certificates?name={path}"))
                .await;
            let id = listed["certificates"][0]["id"].as_str().unwrap().to_owned();
            self.certificate_ids.insert(name, id);
        }
        self.versions.insert(name, version);
    }
}

/// Returns another actor's permission on a path, and creates it if necessary.
async fn permission(server: &Server, path: &str) -> Value {
    let found = server
        .get(&format!("/api/v2/permissions?path={path}&actor={SOMEONE}"))
        .await;
    let id = match found.status {
        200 => found.json()["uuid"].as_str().unwrap().to_owned(),
        _ => server.grant(path, SOMEONE, &["read"]).await,
    };
    json!({"id": id})
}

/// The actor of the permissions in requests.
pub(super) const SOMEONE: &str = "uaa-client:someone";

/// The value of json credentials.
const SECRET: &str = "canary-of-readable-value";

/// An unknown id.
const NO_ID: &str = "7c3b2d1e-0000-4000-8000-000000000000";
