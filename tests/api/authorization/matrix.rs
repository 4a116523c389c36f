//! Every endpoint for every caller: responses, lists, no unauthorized change, and no disclosure by refusals.

use std::collections::BTreeMap;

use keywright_harness::{Caller, Options, Response, Server, TestCertificate};
use serde_json::{Value, json};

use super::{
    cases::{self, Case, RESOURCE, Refusal, Request},
    permission,
    world::World,
};
use crate::mutual_tls::{Contents, Issuing, server_trusting_with};

// The grants of the matrix, and for each grant a caller of each kind.

/// The operations of a permission, as a set of names.
pub(super) const OPERATIONS: [&str; 5] = ["read", "write", "delete", "read_acl", "write_acl"];

/// A permission in relation to the credential that a request is about.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) path: PathOf,
    /// Empty if there is no permission.
    pub(super) operations: Vec<&'static str>,
}

/// The relation of a permission's path to the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathOf {
    /// The credential's name.
    Name,
    /// A path that encloses the name, this many levels above it.
    Enclosing(usize),
    /// The credential's name, in a permission of another actor.
    AnothersName,
    /// The name in another casing.
    OtherCasing,
    /// A path that would enclose the name in another casing.
    OtherCasingEnclosing,
    /// A longer name with the credential's name as a prefix.
    LongerName,
    /// A path that encloses a folder whose name has the credential's folder as a prefix.
    Sibling,
    /// The credential's folder without its contents.
    Folder,
    /// A path that encloses names below the credential's, as if the credential were a folder.
    BelowName,
}

/// Paths that resemble the credential's but do not cover it.
const ELSEWHERE: [PathOf; 7] = [
    PathOf::AnothersName,
    PathOf::OtherCasing,
    PathOf::OtherCasingEnclosing,
    PathOf::LongerName,
    PathOf::Sibling,
    PathOf::Folder,
    PathOf::BelowName,
];

/// The number of levels above the names of the matrix.
const LEVELS: usize = 4;

impl Grant {
    /// Returns every combination: no permission; on each path that covers the credential, each operation alone, all operations,
    /// and all but one; and all operations on each path that does not cover it.
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::none()];
        let mut covering = vec![PathOf::Name];
        covering.extend((1..=LEVELS).map(PathOf::Enclosing));
        for path in covering {
            all.extend(
                operation_sets()
                    .into_iter()
                    .map(|operations| Self { path, operations }),
            );
        }
        all.extend(ELSEWHERE.map(|path| Self {
            path,
            operations: OPERATIONS.to_vec(),
        }));
        all
    }

    /// Returns a grant without operations.
    pub(super) fn none() -> Self {
        Self {
            path: PathOf::Name,
            operations: Vec::new(),
        }
    }

    /// Returns a few grants, enough to detect whether grants have any effect.
    pub(super) fn few() -> Vec<Self> {
        let is_one = |grant: &Self| grant.path == PathOf::Name && grant.operations.len() < 2;
        let mut few = Self::all();
        few.retain(|grant| is_one(grant) || grant.path == PathOf::AnothersName);
        few
    }

    /// Returns whether the grant permits this operation on the credential.
    pub(super) fn allows(&self, operation: &str) -> bool {
        let is_covering = matches!(self.path, PathOf::Name | PathOf::Enclosing(_));
        is_covering && self.operations.contains(&operation)
    }

    fn path(&self, case: &Case) -> String {
        let name = case.path_of(RESOURCE);
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        match self.path {
            PathOf::Name | PathOf::AnothersName => name,
            PathOf::Enclosing(levels) => {
                let mut above = name.as_str();
                for _ in 0..levels {
                    above = above.rsplit_once('/').map_or("", |(above, _)| above);
                }
                format!("{above}/*")
            }
            PathOf::OtherCasing => name.to_lowercase(),
            PathOf::OtherCasingEnclosing => format!("{}/*", folder.to_lowercase()),
            PathOf::LongerName => format!("{name}s"),
            PathOf::Sibling => format!("{folder}s/*"),
            PathOf::Folder => folder.to_owned(),
            PathOf::BelowName => format!("{name}/*"),
        }
    }
}

/// Returns each operation alone, all operations, and all but one.
fn operation_sets() -> Vec<Vec<&'static str>> {
    let mut sets = vec![OPERATIONS.to_vec()];
    for operation in OPERATIONS {
        sets.push(vec![operation]);
        let others = OPERATIONS.into_iter().filter(|other| *other != operation);
        sets.push(others.collect());
    }
    sets
}

/// Returns the permissions of all callers in all cases, as sections of the configuration.
pub(super) fn permissions(cases: &[Case], grants: &[Grant]) -> String {
    let all_actors: Vec<_> = (0..grants.len()).flat_map(actors).collect();
    let mut text = String::new();
    for case in cases {
        for (at, grant) in grants.iter().enumerate() {
            let holders = match grant.path {
                PathOf::AnothersName => vec!["uaa-client:another".to_owned()],
                _ => actors(at).to_vec(),
            };
            if !grant.operations.is_empty() {
                text += &permission(&grant.path(case), &holders, &grant.operations);
            }
        }
        for (name, operation) in case.given {
            text += &permission(&case.path_of(name), &all_actors, &[operation]);
        }
    }
    text
}

/// Returns the actors with the grant at this index: a client, a user and an application.
fn actors(at: usize) -> [String; 3] {
    [
        format!("uaa-client:matrix-{at}"),
        format!("uaa-user:matrix-{at}"),
        format!("mtls-app:{}", application_id(at)),
    ]
}

/// Returns the callers with the grant at this index.
pub(super) async fn callers(server: &Server, clients: &TestCertificate, at: usize) -> [Caller; 3] {
    let id = format!("matrix-{at}");
    let application_id = application_id(at);
    let unit = format!("app:{application_id}");
    let holder = clients.issue(&Contents::of_client(&[&[&unit]]));
    [
        server.as_client(&id).await,
        server.as_user(&id).await,
        server.as_application(&application_id, &holder.chain, &holder.key),
    ]
}

fn application_id(at: usize) -> String {
    format!("0d8c5e9e-0a0f-4f9d-8b1f-{at:012x}")
}

// Every endpoint for every caller: responses, lists, and no unauthorized change.

#[tokio::test]
async fn each_endpoint_enforces_the_permissions_of_each_caller() {
    let matrix = Matrix::start(Options::default(), Grant::all()).await;
    let mut cells = 0;
    for case in cases::all() {
        let is_allowed = |grant: &Grant| case.needs.is_none_or(|needed| grant.allows(needed));
        cells += matrix.send_case(&case, is_allowed).await;
    }
    assert!(cells > 5_000, "{cells}");
}

#[tokio::test]
async fn without_enforcement_each_endpoint_admits_every_caller() {
    let grants = Grant::few();
    let matrix = Matrix::start(Options::default().without_enforcement(), grants).await;
    for case in cases::all() {
        matrix.send_case(&case, |_| true).await;
    }
}

/// A server with all the permissions of the matrix, and the callers.
struct Matrix {
    server: Server,
    grants: Vec<Grant>,
    /// A client, a user and an application for each grant.
    callers: Vec<[Caller; 3]>,
    refusals: BTreeMap<Refusal, Response>,
}

impl Matrix {
    async fn start(options: Options, grants: Vec<Grant>) -> Self {
        let clients = TestCertificate::root("clients");
        let permissions = permissions(&cases::all(), &grants);
        let server = server_trusting_with(&[&clients], options.extra(&permissions)).await;
        let mut all = Vec::new();
        for at in 0..grants.len() {
            all.push(callers(&server, &clients, at).await);
        }
        Self {
            refusals: refusals(&server).await,
            server,
            grants,
            callers: all,
        }
    }

    /// Sends the request of a case as every caller, and returns the number of callers. Callers without permission go
    /// first, while everything still exists.
    async fn send_case(&self, case: &Case, is_allowed: impl Fn(&Grant) -> bool) -> usize {
        let mut world = World::of(&self.server, case).await;
        let (allowed, refused): (Vec<_>, Vec<_>) = self
            .grants
            .iter()
            .zip(&self.callers)
            .partition(|(grant, _)| is_allowed(grant));
        let before = world.all_versions(&self.server).await;
        for (grant, callers) in &refused {
            for caller in *callers {
                let response = send(caller, world.request(case)).await;
                self.assert_refused(case, &world, &response, &reported(case, grant, caller));
            }
        }
        let after = world.all_versions(&self.server).await;
        assert_eq!(
            after, before,
            "a refused request of {} changed the state",
            case.name
        );
        for (grant, callers) in &allowed {
            for caller in *callers {
                world.prepare(&self.server, case).await;
                let response = send(caller, world.request(case)).await;
                let what = reported(case, grant, caller);
                assert_eq!(response.status, case.status, "{what}: {response:?}");
                if case.refusal == Refusal::Hidden {
                    let actual = listed(&response, world.name(RESOURCE));
                    assert_eq!(actual, 1, "{what}: {response:?}");
                }
            }
        }
        (allowed.len() + refused.len()) * 3
    }

    fn assert_refused(&self, case: &Case, world: &World, response: &Response, what: &str) {
        if case.refusal == Refusal::Hidden {
            assert_eq!(response.status, 200, "{what}: {response:?}");
            let actual = listed(response, world.name(RESOURCE));
            assert_eq!(actual, 0, "{what}: {response:?}");
        } else {
            let refusal = &self.refusals[&case.refusal];
            assert_eq!(response.status, refusal.status, "{what}: {response:?}");
            // An interpolation also names the reference.
            let named = format!("the referenced credential {}", world.name(RESOURCE));
            let body = response.body.replace(&named, "the credential");
            assert_eq!(body, refusal.body, "{what}");
        }
    }
}

/// Returns the expected responses to callers without permission, taken from requests for absent resources.
async fn refusals(server: &Server) -> BTreeMap<Refusal, Response> {
    let body = json!({"name": "/nowhere", "type": "value", "value": "v"});
    let stranger = server.as_client("stranger").await;
    let parameters = json!({"common_name": "c", "ca": "/nowhere"});
    let grant = json!({"path": "/nowhere", "actor": "a", "operations": ["read"]});
    BTreeMap::from([
        (Refusal::Forbidden, stranger.put("/api/v1/data", body).await),
        (
            Refusal::NotFound,
            server.get("/api/v1/data?name=/nowhere").await,
        ),
        (
            Refusal::PermissionNotFound,
            server.get("/api/v2/permissions?path=/no&actor=a").await,
        ),
        (
            Refusal::PermissionNotAddable,
            stranger.post("/api/v2/permissions", grant).await,
        ),
        (
            Refusal::PermissionsNotReadable,
            stranger
                .get("/api/v2/permissions/explain?path=/no&actor=a&operation=read")
                .await,
        ),
        (
            Refusal::AuthorityNotFound,
            server
                .generate("/leaf", "certificate", parameters)
                .await
                .expect(404),
        ),
    ])
}

pub(super) async fn send(caller: &Caller, request: Request) -> Response {
    let Request {
        method,
        target,
        body,
    } = request;
    match body {
        Value::Null => caller.send_without_body(method, &target).await,
        body => caller.send(method, &target, body).await,
    }
}

/// Returns the number of occurrences of a name in a list.
fn listed(response: &Response, name: &str) -> usize {
    let lists = response.json();
    let lists = lists.as_object().unwrap().values();
    let items = lists.flat_map(|list| list.as_array().unwrap());
    items.filter(|item| item["name"] == name).count()
}

fn reported(case: &Case, grant: &Grant, caller: &Caller) -> String {
    format!("{} by {} with {grant:?}", case.name, caller.actor())
}

// The response for a forbidden resource equals that for an absent one, byte for byte.

#[tokio::test]
async fn absent_and_forbidden_credentials_get_the_same_response() {
    let clients = TestCertificate::root("clients");
    let permissions = permissions(&cases::all(), &[Grant::none()]);
    let options = Options::default().extra(&permissions);
    let server = server_trusting_with(&[&clients], options).await;
    let callers = callers(&server, &clients, 0).await;
    let developer = server.as_client("developer").await;
    let mut compared = 0;
    for case in cases::all()
        .iter()
        .filter(|case| differs_by_existence(case))
    {
        let present = World::of(&server, case).await;
        let absent = World::absent(case, &present);
        for caller in &callers {
            let what = format!("{} by {}", case.name, caller.actor());
            let when_present = bytes(&send(caller, present.request(case)).await, &present);
            let when_absent = send(caller, absent.request(case)).await;
            if discloses_unknown_ids(case) {
                assert_eq!(when_present.0, 403, "{what}");
                assert_eq!(when_absent.status, 404, "{what}");
                continue;
            }
            assert_eq!(bytes(&when_absent, &absent), when_present, "{what}");
            compared += 1;
        }
        // A permitted caller gets the same response for an absent resource.
        let discloses_absence = case.refusal != Refusal::Forbidden && !needs_no_resource(case);
        if discloses_absence {
            let when_present = send(&callers[0], present.request(case)).await;
            let when_absent = send(&developer, absent.request(case)).await;
            let when_present = bytes(&when_present, &present);
            assert_eq!(bytes(&when_absent, &absent), when_present, "{}", case.name);
        }
    }
    assert!(compared > 60, "{compared}");
}

/// Returns whether a refusal could disclose existence, and the request names the resource of the permission.
fn differs_by_existence(case: &Case) -> bool {
    let names_resource = !matches!(
        case.name,
        "bulk-regenerate-read-intermediate"
            | "bulk-regenerate-write-intermediate"
            | "bulk-regenerate-write-leaf"
            | "regenerate-signed-by"
            | "regenerate-signed-by-through-data"
    );
    case.needs.is_some() && case.refusal != Refusal::Hidden && names_resource
}

/// Returns whether a permitted caller succeeds even without the resource.
fn needs_no_resource(case: &Case) -> bool {
    matches!(
        case.name,
        "bulk-regenerate-ca"
            | "permission-explain"
            | "permission-add"
            | "permission-add-to-credential"
    )
}

/// Returns whether the case is a write by the id of a certificate, for which an unknown id is 404.
fn discloses_unknown_ids(case: &Case) -> bool {
    case.refusal == Refusal::Forbidden && case.name.starts_with("certificate-")
}

/// Returns the response without the parts that differ in every response, and without the name of the resource.
fn bytes(response: &Response, world: &World) -> (u16, Vec<(String, String)>, String) {
    let mut headers = response.headers.clone();
    headers.retain(|(name, _)| !["date", "x-request-id"].contains(&name.as_str()));
    headers.sort();
    let body = response.body.replace(world.name(RESOURCE), RESOURCE);
    (response.status, headers, body)
}
