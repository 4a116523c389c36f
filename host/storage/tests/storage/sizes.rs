//! The sizes of versions, which are read before the versions.

use keywright_core::{
    credential::LookupName,
    ports::{CredentialKey, CredentialRepository, VersionSelection, VersionsSize},
};
use uuid::Uuid;

use super::support::Fixture;

#[tokio::test]
async fn the_size_is_that_of_the_selected_versions() {
    let fixture = Fixture::new().await;
    for seconds in 0..4 {
        fixture.append("/It", "password", seconds).await;
        fixture.append("/other", "password", seconds).await;
    }
    let name = LookupName::new("/iT");
    let id = fixture.all("/It").await[0].credential_id;
    for count_max in [0, 1, 3, 4, 5, u32::MAX] {
        let selection = VersionSelection::Newest(count_max);
        let read = fixture.credentials.versions_by_name(&name, selection).await;
        let read = read.unwrap();
        let bytes = read.iter().map(|version| version.envelope.ciphertext.len());
        let expected = VersionsSize {
            count: u32::try_from(read.len()).unwrap(),
            ciphertext_bytes: bytes.sum(),
        };
        for key in [CredentialKey::Name(&name), CredentialKey::Id(id)] {
            let size = fixture.credentials.size_of_versions(key, count_max).await;
            assert_eq!(size.unwrap(), expected, "{key:?} {count_max}");
        }
    }
    let nothing = CredentialKey::Id(Uuid::nil());
    let size = fixture.credentials.size_of_versions(nothing, 1).await;
    assert_eq!(size.unwrap(), VersionsSize::default());
}

#[tokio::test]
async fn the_newest_sizes_have_the_stored_names() {
    let fixture = Fixture::new().await;
    fixture.append("/It", "password", 1).await;
    let names = [LookupName::new("/iT"), LookupName::new("/absent")];
    let sizes = fixture.credentials.newest_sizes_by_names(&names).await;
    let sizes = sizes.unwrap();
    let stored = &fixture.all("/It").await[0];
    assert_eq!(sizes.len(), 1);
    assert_eq!(sizes[0].name, stored.name);
    assert_eq!(sizes[0].ciphertext_bytes, stored.envelope.ciphertext.len());
}
