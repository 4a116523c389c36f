//! Retries after conflicts with other transactions.

use keywright_core::ports::{AppendCondition, Appended, CredentialRepository, RepositoryFailure};
use sqlx::{Connection, Executor, PgConnection};

use crate::{
    storage::support::{Fixture, version},
    url,
};

#[tokio::test]
async fn a_locked_credential_delays_no_other() {
    let fixture = Fixture::new().await;
    fixture.append("/locked", "value", 1).await;
    let mut other = PgConnection::connect(&url(&fixture)).await.unwrap();
    let lock = "begin; select from credential where name = '/locked' for update";
    other.execute(lock).await.unwrap();
    let append = |name: &str| {
        let (credentials, new) = (
            fixture.credentials.clone(),
            version(&fixture, name, "value", 1),
        );
        tokio::spawn(async move {
            let appended = credentials.append(new, AppendCondition::Always, &[]);
            matches!(appended.await.unwrap(), Appended::Written(_))
        })
    };
    // More than there are connections.
    let delayed: Vec<_> = (0..6).map(|_| append("/locked")).collect();
    let others: Vec<_> = (0..30)
        .map(|number| append(&format!("/{number}")))
        .collect();
    for other in others {
        assert!(other.await.unwrap());
    }
    assert!(delayed.iter().all(|locked| !locked.is_finished()));
    other.execute("rollback").await.unwrap();
    for locked in delayed {
        assert!(locked.await.unwrap());
    }
}

#[tokio::test]
async fn a_damaged_credential_fails_no_other_of_its_batch() {
    let fixture = Fixture::new().await;
    fixture.append("/damaged", "value", 1).await;
    fixture
        .change("update credential set credential_type = 'no type'")
        .await;
    let new = version(&fixture, "/damaged", "value", 1);
    let appended = fixture
        .credentials
        .append(new, AppendCondition::Always, &[]);
    // The failure of the batch would be `Unavailable`.
    let failure = appended.await.unwrap_err();
    assert!(
        matches!(failure, RepositoryFailure::Inconsistent(_)),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_read_that_conflicts_with_writes_is_retried() {
    let fixture = Fixture::new().await;
    fixture
        .change(
            "create sequence read_count;
             create function read_is_let() returns boolean language plpgsql as $$ begin
                 if nextval('read_count') < 3 then
                     raise exception 'another one writes' using errcode = '40001';
                 end if;
                 return true;
             end $$;
             alter table encryption_key rename to stored_encryption_key;
             create view encryption_key as select * from stored_encryption_key where read_is_let()",
        )
        .await;
    assert_eq!(fixture.encryption_keys.all().await.unwrap().len(), 1);
    assert_eq!(fixture.count("select last_value from read_count").await, 3);
    assert_eq!(fixture.database.transactions_retried(), 2);
}

#[tokio::test]
async fn a_version_with_a_sequence_before_earlier_ones_is_retried() {
    let fixture = Fixture::new().await;
    fixture.change(&sequences_after(100)).await;
    let before = fixture.append("/a", "value", 1).await;
    // Like connections that cache sequences: the next ones are 92, 97 and 102.
    fixture
        .change("alter table credential_version alter column sequence set increment by 5")
        .await;
    fixture.change(&sequences_after(87)).await;
    let after = fixture.append("/a", "value", 1).await;
    let versions = fixture.all("/a").await;
    let found: Vec<_> = versions.iter().map(|one| (one.id, one.sequence)).collect();
    assert_eq!(found, [(after, 102), (before, 101)]);
    assert_eq!(fixture.database.transactions_retried(), 2);
    // Without an earlier version, any sequence is accepted.
    fixture.change(&sequences_after(7)).await;
    fixture.append("/b", "value", 1).await;
    assert_eq!(fixture.all("/b").await[0].sequence, 12);
}

fn sequences_after(last: i64) -> String {
    format!("select setval(pg_get_serial_sequence('credential_version', 'sequence'), {last})")
}
