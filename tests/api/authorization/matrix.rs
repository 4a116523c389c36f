//! Every endpoint for every caller: responses, lists, and no unauthorized change.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::collections::BTreeMap;

use keywright_harness::{Answer, Caller, Options, Server};
use serde_json::{Value, json};

use super::{
    cases::{self, Case, IT, Lacking, Request},
    grants::{self, Grant},
    world::World,
};
use crate::mutual_tls::{Authority, server_knowing_with};

#[tokio::test]
async fn each_endpoint_enforces_the_permissions_of_each_caller() {
    let matrix = Matrix::start(Options::default(), Grant::all()).await;
    let mut cells = 0;
    for case in cases::all() {
        let is_allowed = |grant: &Grant| case.needs.is_none_or(|needed| grant.allows(needed));
        cells += matrix.fill(&case, is_allowed).await;
    }
    assert!(cells > 5_000, "{cells}");
}

#[tokio::test]
async fn without_enforcement_each_endpoint_admits_every_caller() {
    let grants = Grant::few();
    let matrix = Matrix::start(Options::default().without_enforcement(), grants).await;
    for case in cases::all() {
        matrix.fill(&case, |_| true).await;
    }
}

/// A server that has all the permissions of the matrix, and the callers.
struct Matrix {
    server: Server,
    grants: Vec<Grant>,
    /// A client, a user and an application for each grant.
    callers: Vec<[Caller; 3]>,
    refusals: BTreeMap<Lacking, Answer>,
}

impl Matrix {
    async fn start(options: Options, grants: Vec<Grant>) -> Self {
        let clients = Authority::root("clients");
        let permissions = grants::permissions(&cases::all(), &grants);
        let server = server_knowing_with(&[&clients], options.extra(&permissions)).await;
        let mut callers = Vec::new();
        for at in 0..grants.len() {
            callers.push(grants::callers(&server, &clients, at).await);
        }
        Self {
            refusals: refusals(&server).await,
            server,
            grants,
            callers,
        }
    }

    /// Sends the request of a case as every caller, and returns the number of callers. Callers without permission go
    /// first, while everything still exists.
    async fn fill(&self, case: &Case, is_allowed: impl Fn(&Grant) -> bool) -> usize {
        let mut world = World::of(&self.server, case).await;
        let (allowed, refused): (Vec<_>, Vec<_>) = self
            .grants
            .iter()
            .zip(&self.callers)
            .partition(|(grant, _)| is_allowed(grant));
        let before = world.all_versions(&self.server).await;
        for (grant, callers) in &refused {
            for caller in *callers {
                let answer = send(caller, (case.request)(&world)).await;
                self.assert_refused(case, &world, &answer, &reported(case, grant, caller));
            }
        }
        let after = world.all_versions(&self.server).await;
        assert_eq!(after, before, "{} has changed something", case.name);
        for (grant, callers) in &allowed {
            for caller in *callers {
                world.prepare(&self.server, case).await;
                let answer = send(caller, (case.request)(&world)).await;
                let what = reported(case, grant, caller);
                assert_eq!(answer.status, case.status, "{what}: {answer:?}");
                if case.lacking == Lacking::Hidden {
                    assert_eq!(listed(&answer, world.name(IT)), 1, "{what}: {answer:?}");
                }
            }
        }
        (allowed.len() + refused.len()) * 3
    }

    fn assert_refused(&self, case: &Case, world: &World, answer: &Answer, what: &str) {
        if case.lacking == Lacking::Hidden {
            assert_eq!(answer.status, 200, "{what}: {answer:?}");
            assert_eq!(listed(answer, world.name(IT)), 0, "{what}: {answer:?}");
        } else {
            let refusal = &self.refusals[&case.lacking];
            assert_eq!(answer.status, refusal.status, "{what}: {answer:?}");
            assert_eq!(answer.body, refusal.body, "{what}");
        }
    }
}

/// Returns the expected responses to callers without permission, taken from requests for absent resources.
async fn refusals(server: &Server) -> BTreeMap<Lacking, Answer> {
    let body = json!({"name": "/nowhere", "type": "value", "value": "v"});
    let stranger = server.as_client("stranger").await;
    let parameters = json!({"common_name": "c", "ca": "/nowhere"});
    BTreeMap::from([
        (Lacking::Forbidden, stranger.put("/api/v1/data", body).await),
        (
            Lacking::NotFound,
            server.get("/api/v1/data?name=/nowhere").await,
        ),
        (
            Lacking::PermissionNotFound,
            server.get("/api/v2/permissions?path=/no&actor=a").await,
        ),
        (
            Lacking::AuthorityNotFound,
            server
                .generate("/leaf", "certificate", parameters)
                .await
                .expect(404),
        ),
    ])
}

/// Sends a request as a caller.
pub(super) async fn send(caller: &Caller, request: Request) -> Answer {
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

/// The number of occurrences of a name in a list.
fn listed(answer: &Answer, name: &str) -> usize {
    let lists = answer.json();
    let lists = lists.as_object().unwrap().values();
    let items = lists.flat_map(|list| list.as_array().unwrap());
    items.filter(|item| item["name"] == name).count()
}

fn reported(case: &Case, grant: &Grant, caller: &Caller) -> String {
    format!("{} by {} with {grant:?}", case.name, caller.actor())
}
