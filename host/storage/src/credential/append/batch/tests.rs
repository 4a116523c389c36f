//! The composition of batches.

use chrono::DateTime;
use keywright_core::ports::{Envelope, Identifiers, NewVersion, ReadVersions, VersionSelection};

use super::*;

struct NoIdentifiers;

impl Identifiers for NoIdentifiers {
    fn fresh(&self) -> Uuid {
        Uuid::nil()
    }
}

fn addition(name: &str, ciphertext_bytes: usize) -> Addition {
    Addition {
        identifiers: Arc::new(NoIdentifiers),
        version: NewVersion {
            id: Uuid::nil(),
            name: CredentialName::parse(name).unwrap(),
            credential_type: CredentialType::parse("value").unwrap(),
            created_at: DateTime::UNIX_EPOCH,
            is_transitional: false,
            is_generated: None,
            certificate: None,
            signed_by: None,
            issuer: None,
            provenance: None,
            envelope: Envelope {
                key_id: Uuid::nil(),
                nonce: Vec::new(),
                ciphertext: vec![0; ciphertext_bytes],
            },
        },
        condition: AppendCondition::Always,
        unchanged: Vec::new(),
    }
}

/// Returns the names in each batch, if all these versions are queued when the first batch begins.
async fn batches(additions: impl IntoIterator<Item = Addition>) -> Vec<Vec<String>> {
    let waiting = Waiting::default();
    let (queue, pending) = mpsc::unbounded_channel();
    let mut callers = Vec::new();
    for addition in additions {
        let (answer, _) = oneshot::channel();
        let addition = Arc::new(addition);
        let (queued, caller) = waiting.queued(Pending { addition, answer });
        queue.send(queued).unwrap();
        callers.push(caller);
    }
    drop(queue);
    let mut backlog = Backlog {
        queue: pending,
        next: None,
    };
    let mut batches = Vec::new();
    while let Some(batch) = backlog.next_batch().await {
        let names = batch.iter().map(|pending| folded_name(&pending.addition));
        batches.push(names.collect());
    }
    assert_eq!(waiting.count(), 0);
    batches
}

#[tokio::test]
async fn batches_are_sorted_by_name_and_repeat_no_name() {
    let names = ["/c", "/a", "/b", "/A", "/d"];
    let batches = batches(names.map(|name| addition(name, 1))).await;
    assert_eq!(batches, [vec!["/a", "/b", "/c"], vec!["/a", "/d"]]);
}

#[tokio::test]
async fn the_versions_and_bytes_of_a_batch_are_limited() {
    let lengths = |batches: Vec<Vec<String>>| -> Vec<usize> {
        batches.iter().map(Vec::len).collect::<Vec<_>>()
    };
    let many = (0..=LENGTH_MAX).map(|number| addition(&format!("/{number}"), 1));
    assert_eq!(lengths(batches(many).await), [LENGTH_MAX, 1]);
    let full = [BYTES_MAX - 1, 1].map(|bytes| addition(&format!("/{bytes}"), bytes));
    assert_eq!(lengths(batches(full).await), [2]);
    let beyond = [BYTES_MAX, 1, BYTES_MAX + 1].map(|bytes| addition(&format!("/{bytes}"), bytes));
    assert_eq!(lengths(batches(beyond).await), [1, 1, 1]);
}

#[test]
fn a_version_that_depends_on_other_versions_is_not_batched() {
    assert!(is_batched(&addition("/a", 1)));
    let mut transitional = addition("/a", 1);
    transitional.version.is_transitional = true;
    let mut certificate = addition("/a", 1);
    certificate.version.credential_type =
        CredentialType::parse(CredentialType::CERTIFICATE).unwrap();
    let mut signed = addition("/a", 1);
    signed.version.signed_by = Some(CredentialName::parse("/ca").unwrap());
    let mut newest = addition("/a", 1);
    newest.condition = AppendCondition::NewestIs(Some(Uuid::nil()));
    let mut reading = addition("/a", 1);
    reading.unchanged.push(ReadVersions {
        name: CredentialName::parse("/ca").unwrap().lookup(),
        selection: VersionSelection::Current,
        ids: Vec::new(),
    });
    for addition in [transitional, certificate, signed, newest, reading] {
        assert!(!is_batched(&addition));
    }
}
