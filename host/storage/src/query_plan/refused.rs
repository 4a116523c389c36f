//! Runs refused reads on PostgreSQL, and checks that none scans the credential or its versions.

use super::{MANY_VERSIONS_OF_ONE, migrated_postgres};
use crate::{credential::statements as credential, statement::StatementOfMany};

#[tokio::test]
async fn a_refused_read_scans_nothing_of_the_credential() {
    let Some((server, url)) = migrated_postgres().await else {
        return;
    };
    server.run_at(&url, MANY_VERSIONS_OF_ONE);
    server.run_at(&url, PERMISSION_TO_WRITE);
    for (statement, chosen) in READS {
        for mode in ["force_generic_plan", "force_custom_plan"] {
            let run = |operations: i64| {
                let text = statement.text(1);
                let explain = format!(
                    "set enable_seqscan = off; set plan_cache_mode = {mode}; prepare explained as {text};
                     explain (analyze, costs off, timing off, summary off)
                     execute explained ('writer', {operations}, '/4', '/4', {chosen} '/4')"
                );
                server.run_at(&url, &explain)
            };
            let refused = run(1);
            assert!(refused.contains("never executed"), "{refused}");
            assert_eq!(executed_scans(&refused), Vec::<&str>::new(), "{refused}");
            let permitted = run(2);
            assert!(!executed_scans(&permitted).is_empty(), "{permitted}");
        }
    }
}

/// Returns the scans of credentials and their versions that PostgreSQL executed.
fn executed_scans(plan: &str) -> Vec<&str> {
    let scans = plan.lines().filter(|line| {
        let reads = line.contains("Scan using credential") || line.contains("Scan on credential");
        reads && !line.contains("never executed")
    });
    scans.collect()
}

/// The statements, with the arguments that select versions.
const READS: [(&StatementOfMany, &str); 3] = [
    (&credential::POSTGRES_PERMITTED_VERSIONS_CURRENT, ""),
    (&credential::POSTGRES_PERMITTED_VERSIONS_NEWEST_FIRST, "1,"),
    (
        &credential::POSTGRES_PERMITTED_VERSION_BY_ID,
        "gen_random_uuid(),",
    ),
];

const PERMISSION_TO_WRITE: &str = "insert into permission (id, path, actor, operations) values (gen_random_uuid(), '/4', 'writer', 2)";
