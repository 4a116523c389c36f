//! The versions from which other versions were derived.

use std::ops::ControlFlow;

use keywright_core::{
    credential::{CredentialName, FindNames, FoundCredential, InputVersion, LookupName},
    ports::{CredentialRepository, NewVersion},
};
use uuid::Uuid;

use crate::support::{Fixture, reader, version};

const COUNT: &str = "select count(*) from credential_version_input";

async fn append_derived(fixture: &Fixture, name: &str, inputs: &[(&str, Uuid)]) -> Uuid {
    let inputs = inputs.iter().map(|(input, version_id)| InputVersion {
        pointer: format!("/{input}"),
        name: CredentialName::parse(input).unwrap(),
        version_id: *version_id,
    });
    let new = version(fixture, name, "htpasswd", 1);
    let inputs = inputs.collect();
    fixture.write(NewVersion { inputs, ..new }).await
}

async fn derived_from(fixture: &Fixture, input: &str, names: FindNames) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    let mut receive = |found: FoundCredential| {
        all.push((found.name.to_string(), found.is_stale.unwrap()));
        ControlFlow::Continue(())
    };
    let (reader, input) = (reader(), LookupName::new(input));
    let finding = fixture
        .credentials
        .derived_from(&reader, &input, &names, &mut receive);
    finding.await.unwrap();
    all
}

fn owned<const N: usize>(expected: [(&str, bool); N]) -> Vec<(String, bool)> {
    expected
        .map(|(name, is_stale)| (name.to_owned(), is_stale))
        .into()
}

#[tokio::test]
async fn only_newest_versions_are_compared_with_the_active_input() {
    let fixture = Fixture::new().await;
    let first = fixture.append("/In", "password", 1).await;
    append_derived(&fixture, "/replaced", &[("/In", first)]).await;
    fixture.append("/replaced", "htpasswd", 2).await;
    append_derived(&fixture, "/Old", &[("/In", first), ("/IN", first)]).await;
    let second = fixture.append("/In", "password", 2).await;
    append_derived(&fixture, "/path/new", &[("/in", second), ("/gone", first)]).await;
    let all = || FindNames::below("");
    assert_eq!(
        derived_from(&fixture, "/iN", all()).await,
        owned([("/path/new", false), ("/Old", true)])
    );
    assert_eq!(
        derived_from(&fixture, "/gone", all()).await,
        owned([("/path/new", true)])
    );
    for names in [FindNames::below("/path"), FindNames::containing("W")] {
        let found = derived_from(&fixture, "/in", names).await;
        assert_eq!(found, owned([("/path/new", false)]));
    }
    let found = derived_from(&fixture, "/in", FindNames::containing("ol")).await;
    assert_eq!(found, owned([("/Old", true)]));
    assert!(derived_from(&fixture, "/other", all()).await.is_empty());
}

#[tokio::test]
async fn a_deleted_version_leaves_no_rows() {
    let fixture = Fixture::new().await;
    let input = fixture.append("/in", "password", 1).await;
    for _ in 0..2 {
        append_derived(&fixture, "/derived", &[("/in", input), ("/other", input)]).await;
    }
    assert_eq!(fixture.count(COUNT).await, 4);
    let delete = async |name| {
        let name = LookupName::new(name);
        fixture.credentials.delete(&name).await.unwrap().unwrap()
    };
    // The input does not belong to the versions that were derived from it.
    delete("/in").await;
    assert_eq!(fixture.count(COUNT).await, 4);
    delete("/derived").await;
    assert_eq!(fixture.count(COUNT).await, 0);
}
