//! Results and limits of a resolver.

use keywright_core::{
    permission::Actor,
    ports::{PluginFailure, PluginFault, Reference},
};
use serde_json::json;

use crate::support::{doing, faulted, hostile_resolver};

#[tokio::test]
async fn the_resolver_gets_the_document_and_returns_references() {
    let found = hostile_resolver(&json!({}))
        .find_references(&actor(), r#"{"a":1}"#)
        .await
        .unwrap();
    let expected = Reference {
        pointer: "/a".to_owned(),
        name: r#"{"a":1}"#.to_owned(),
    };
    assert_eq!(found, [expected]);
}

#[tokio::test]
async fn more_than_1000_references_are_rejected() {
    let find = |behaviour| {
        let resolver = hostile_resolver(&doing("find-references", behaviour));
        async move { resolver.find_references(&actor(), "{}").await }
    };
    assert_eq!(find("most-references").await.unwrap().len(), 1_000);
    for behaviour in ["many-references", "amplify", "long-name"] {
        let outcome = find(behaviour).await;
        assert!(
            matches!(outcome, Err(PluginFailure::DocumentRefused(_))),
            "{behaviour}"
        );
    }
}

#[tokio::test]
async fn each_misbehaviour_has_its_fault() {
    for (behaviour, fault) in [
        ("twice", PluginFault::OutputMalformed),
        ("within", PluginFault::OutputMalformed),
        ("claimed-output", PluginFault::OutputMalformed),
        ("recurse", PluginFault::StackExhausted),
        ("allocate", PluginFault::MemoryExceeded),
        ("panic", PluginFault::Trapped),
        ("misconfigured", PluginFault::Misconfigured),
        ("other", PluginFault::Reported),
    ] {
        let resolver = hostile_resolver(&doing("find-references", behaviour));
        let outcome = resolver.find_references(&actor(), "{}").await;
        assert_eq!(outcome, Err(faulted("resolver", fault)), "{behaviour}");
    }
}

#[tokio::test]
async fn the_reason_of_a_refusal_is_truncated_and_printable() {
    let resolver = hostile_resolver(&doing("find-references", "refuse-document"));
    let Err(PluginFailure::DocumentRefused(text)) = resolver.find_references(&actor(), "{}").await
    else {
        panic!("not refused");
    };
    assert!(text.starts_with("noxxx") && text.len() == 1023, "{text}");
}

fn actor() -> Actor {
    Actor::of_lookup("uaa-client:app")
}
