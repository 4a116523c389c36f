//! The response for a forbidden resource equals that for an absent one, byte for byte.

use keywright_harness::{Answer, Options};

use super::{
    cases::{self, Case, Lacking},
    grants::{self, Grant},
    matrix::send,
    world::World,
};
use crate::mutual_tls::{Authority, server_knowing_with};

#[tokio::test]
async fn absent_and_forbidden_credentials_get_the_same_response() {
    let clients = Authority::root("clients");
    let permissions = grants::permissions(&cases::all(), &[Grant::none()]);
    let options = Options::default().extra(&permissions);
    let server = server_knowing_with(&[&clients], options).await;
    let callers = grants::callers(&server, &clients, 0).await;
    let developer = server.as_client("developer").await;
    let mut compared = 0;
    for case in cases::all()
        .iter()
        .filter(|case| differs_by_existence(case))
    {
        let there = World::of(&server, case).await;
        let absent = World::absent(case, &there);
        for caller in &callers {
            let what = format!("{} by {}", case.name, caller.actor());
            let is_there = bytes(&send(caller, (case.request)(&there)).await);
            let is_absent = send(caller, (case.request)(&absent)).await;
            if tells_unknown_ids(case) {
                assert_eq!(is_there.0, 403, "{what}");
                assert_eq!(is_absent.status, 404, "{what}");
                continue;
            }
            assert_eq!(bytes(&is_absent), is_there, "{what}");
            compared += 1;
        }
        // A permitted caller gets the same response, which reveals the absence.
        let tells_absence = case.lacking != Lacking::Forbidden && !needs_nothing_there(case);
        if tells_absence {
            let is_there = send(&callers[0], (case.request)(&there)).await;
            let is_absent = send(&developer, (case.request)(&absent)).await;
            assert_eq!(bytes(&is_absent), bytes(&is_there), "{}", case.name);
        }
    }
    assert!(compared > 60, "{compared}");
}

/// Whether a refusal could disclose existence, and the request names the resource of the permission.
fn differs_by_existence(case: &Case) -> bool {
    let names_it = !matches!(
        case.name,
        "bulk-through"
            | "bulk-nested"
            | "bulk-leaf"
            | "regenerate-signed-by"
            | "regenerate-signed-by-through-data"
    );
    case.needs.is_some() && case.lacking != Lacking::Hidden && names_it
}

/// Whether a permitted caller succeeds even without the resource.
fn needs_nothing_there(case: &Case) -> bool {
    matches!(
        case.name,
        "bulk-of" | "permission-explain" | "permission-add" | "permission-add-to-credential"
    )
}

/// Whether it is a write by the id of a certificate, for which an unknown id is 404.
fn tells_unknown_ids(case: &Case) -> bool {
    case.lacking == Lacking::Forbidden && case.name.starts_with("certificate-")
}

/// Returns the response without the parts that differ in every response.
fn bytes(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !["date", "x-request-id"].contains(&name.as_str()));
    headers.sort();
    (answer.status, headers, answer.body.clone())
}
