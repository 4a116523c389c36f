//! Retries after conflicts with other transactions.

use crate::storage::support::Fixture;

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
