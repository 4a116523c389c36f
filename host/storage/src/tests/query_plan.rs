//! Tests that no statement's query plan reads a whole table, and that a refused read on PostgreSQL scans neither the credential
//! nor its versions.

use std::sync::Arc;

use keywright_core::ports::SignedTypes;
use keywright_test_postgres::PostgresServer;
use tempfile::TempDir;

use crate::{
    Database, DatabaseOptions, PostgresOptions, SqliteOptions,
    check::statements as check,
    connections::{self, Connections, Engine, SqliteConnection},
    credential::{append, append_batches, find::statements as find, statements as credential},
    database::NoIdentifiers,
    encryption_key::statements as encryption_key,
    lease::statements as lease,
    permission::statements as permission,
    retention::statements as retention,
    statement::{StatementOfMany, built_statement, column, statement},
};

/// The index that lists the versions of one credential.
const INDEX_OF_VERSIONS: &str = "credential_version_credential";

/// SQLite: the index that lists the versions of one credential that have a certificate.
const INDEX_OF_CERTIFICATES: &str = "credential_version_certificate";

/// PostgreSQL: the index that lists the versions of all credentials.
const INDEX_OF_ALL_VERSIONS: &str = "credential_version_pkey";

/// SQLite: the step of a search by path, which reads only a covering index.
const INDEX_OF_LISTING: &str = "USING COVERING INDEX credential_listing";

/// PostgreSQL: the step that reads a sample of the names by id.
const SAMPLE_OF_NAMES: &str = "credential_id_key on credential sampled";

#[tokio::test]
async fn sqlite_prepares_point_reads_once() {
    let folder = tempfile::tempdir().unwrap();
    let database = migrated_sqlite(&folder).await;
    let Connections::Sqlite(readers) = &database.reader else {
        panic!("not a file")
    };
    for sql in POINT_READS {
        let query = (0..parameters(sql)).fold(statement(sql), |query, _| query.bind(1));
        for _ in 0..2 {
            let read = |connection: &SqliteConnection| connection.fetch_all(&query);
            readers.in_place(read).await.unwrap();
        }
        let again = |connection: &SqliteConnection| connection.repreparations(sql);
        assert_eq!(readers.in_place(again).await.unwrap(), 0, "{sql}");
    }
}

#[tokio::test]
async fn no_statement_reads_a_whole_table_of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let database = migrated_sqlite(&folder).await;
    for statement in indexed_statements(Engine::Sqlite) {
        for step in plan(&database, &statement).await {
            assert!(!is_whole_scan(&step), "{step}\n{statement}");
        }
    }
    for statement in READING_CURRENT_VERSIONS {
        let steps = plan(&database, statement).await.join("\n");
        assert!(!steps.contains(INDEX_OF_VERSIONS), "{steps}\n{statement}");
    }
    for statement in stopping_early(Engine::Sqlite) {
        let steps = plan(&database, statement).await.join("\n");
        assert!(steps.contains(INDEX_OF_VERSIONS), "{steps}\n{statement}");
        assert!(!steps.contains("TEMP B-TREE"), "{steps}\n{statement}");
    }
    let steps = plan(&database, credential::LATEST_CERTIFICATE_OF_CREDENTIAL).await;
    let [step] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert!(step.contains(INDEX_OF_CERTIFICATES), "{step}");
    let steps = plan(&database, find::FIND.between).await.join("\n");
    assert!(steps.contains(INDEX_OF_LISTING), "{steps}");
    for statement in ["select * from credential", "select * from credential_name"] {
        let steps = plan(&database, statement).await;
        assert!(steps.iter().any(|step| is_whole_scan(step)), "{steps:?}");
    }
}

#[tokio::test]
async fn no_statement_reads_a_whole_table_of_postgresql() {
    let Some((server, url)) = migrated_postgres().await else {
        return;
    };
    let plan = |statement: &str| server.run_at(&url, &explain(statement));
    // With few versions, the plan may sort the versions of one credential.
    let of_few = stopping_early(Engine::Postgres)
        .filter(|&statement| statement != retention::POSTGRES_DELETABLE_VERSIONS);
    no_plan_reads_a_whole_table(plan, of_few);
    server.run_at(&url, MANY_VERSIONS_OF_ONE);
    no_plan_reads_a_whole_table(plan, stopping_early(Engine::Postgres));
}

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

#[tokio::test]
async fn a_search_by_chains_sorts_one_link_per_credential() {
    let folder = tempfile::tempdir().unwrap();
    let database = migrated_sqlite(&folder).await;
    let run = async |statement| database.writer.fetch_all(statement).await.unwrap();
    for sql in SIGNED_CERTIFICATE {
        run(statement(sql)).await;
    }
    let searching = statement(find::EFFECTIVE_EXPIRIES.all).bind(9).bind(100);
    let rows = run(searching).await;
    let depths = rows.iter().map(|row| column!(row, "", "first_depth"));
    assert_eq!(depths.collect::<Result<Vec<i64>, _>>().unwrap(), [0]);
}

/// Creates a database with the current schema in this folder.
async fn migrated_sqlite(folder: &TempDir) -> Database {
    let options = DatabaseOptions::Sqlite(SqliteOptions {
        path: folder.path().join("plans.sqlite"),
        may_create: true,
        readers_max: 1,
        wait_max: std::time::Duration::from_mins(10),
    });
    Database::open(&options, Arc::new(NoIdentifiers))
        .await
        .unwrap()
}

/// Creates a database with the current schema, and returns its PostgreSQL server and URL. `None` if PostgreSQL is not installed.
async fn migrated_postgres() -> Option<(&'static PostgresServer, String)> {
    let server = keywright_test_postgres::shared()?;
    let url = server.new_database();
    let options = DatabaseOptions::Postgres(PostgresOptions {
        url: url.clone(),
        password: None,
        root_certificate: None,
        readers_max: 1,
        writers_max: 1,
        wait_max: std::time::Duration::from_mins(10),
    });
    Database::open(&options, Arc::new(NoIdentifiers))
        .await
        .unwrap();
    Some((server, url))
}

fn no_plan_reads_a_whole_table(
    plan: impl Fn(&str) -> String,
    stopping_early: impl Iterator<Item = &'static str>,
) {
    for statement in indexed_statements(Engine::Postgres) {
        let plan = plan(&statement);
        assert_eq!(
            whole_scans(&plan),
            Vec::<&str>::new(),
            "{statement}\n{plan}"
        );
    }
    for statement in READING_CURRENT_VERSIONS {
        let plan = plan(statement);
        assert!(!plan.contains(INDEX_OF_VERSIONS), "{statement}\n{plan}");
    }
    for statement in stopping_early {
        let plan = plan(statement);
        assert!(plan.contains(INDEX_OF_VERSIONS), "{statement}\n{plan}");
        assert!(!plan.contains(INDEX_OF_ALL_VERSIONS), "{statement}\n{plan}");
        assert!(!plan.contains("Sort"), "{statement}\n{plan}");
    }
    for statement in [
        "select * from credential where created_at = $1",
        "select * from credential order by sequence",
        "select * from credential_name where $1 = any(parts)",
        "select sampled.name_folded from credential sampled order by sampled.id",
    ] {
        assert!(!whole_scans(&plan(statement)).is_empty(), "{statement}");
    }
}

async fn plan(database: &Database, sql: &str) -> Vec<String> {
    let query = built_statement(format!("explain query plan {sql}"));
    let query = (0..parameters(sql)).fold(query, |query, _| query.bind(None::<i64>));
    let writer = &database.writer;
    let rows = writer.fetch_all(query).await.unwrap();
    let details = rows.iter().map(|row| column!(row, "plan", "detail"));
    details.collect::<Result<_, _>>().unwrap()
}

/// Fills a store so that PostgreSQL expects any credential to own nearly every version: one credential has thousands of
/// versions, all newer than the versions of the other credentials.
const MANY_VERSIONS_OF_ONE: &str = "
    insert into encryption_key (id, provider, canary_nonce, canary_ciphertext, created_at)
    values (gen_random_uuid(), 'raw', '', '', 0);
    insert into credential (id, name, name_folded, credential_type, created_at)
    select gen_random_uuid(), '/' || number, '/' || number, 'json', 0 from generate_series(1, 4) number;
    insert into credential_version
        (id, credential_sequence, created_at, is_transitional, is_generated, encryption_key_id, nonce, ciphertext)
    select gen_random_uuid(), c.sequence, 0, false, false, k.id, '', ''
    from credential c join generate_series(1, 10000) number on c.name = '/4' or number = 1, encryption_key k
    order by c.name, number;
    update credential c set (newest_sequence, current_sequence) = (
        select max(v.sequence), max(v.sequence) from credential_version v where v.credential_sequence = c.sequence
    );
    set default_statistics_target = 1;
    analyze credential, credential_version";

/// Adds a certificate that expires together with its issuer.
const SIGNED_CERTIFICATE: [&str; 3] = [
    "insert into encryption_key (id, provider, canary_nonce, canary_ciphertext, created_at)
     values (zeroblob(16), 'raw', x'', x'', 0)",
    "insert into credential (id, name, name_folded, credential_type, created_at, current_sequence, current_created_at)
     values (zeroblob(16), '/a', '/a', 'certificate', 0, 1, 0)",
    "insert into credential_version
        (id, credential_sequence, created_at, is_transitional, expires_at, is_certificate_authority, is_self_signed,
         key_length_bits, issuer_expires_at, encryption_key_id, nonce, ciphertext)
     values (zeroblob(16), 1, 0, 0, 9, 0, 0, 0, 9, zeroblob(16), x'', x'')",
];

/// Returns SQL that explains the generic plan of a statement. Without `enable_seqscan`, PostgreSQL plans to read a whole table
/// only if it has no alternative.
fn explain(statement: &str) -> String {
    let nulls = vec!["null"; parameters(statement)].join(", ");
    let arguments = if nulls.is_empty() {
        nulls
    } else {
        format!("({nulls})")
    };
    let types = parameter_types(statement);
    format!(
        "set enable_seqscan = off; set plan_cache_mode = force_generic_plan;
         prepare explained{types} as {statement}; explain (costs off) execute explained {arguments}"
    )
}

/// Counts the parameters of a statement.
fn parameters(statement: &str) -> usize {
    let numbers = (1..).take_while(|number| statement.contains(&format!("${number}")));
    numbers.count()
}

/// Returns the types of parameters that PostgreSQL can't infer, because they are in a list of values.
fn parameter_types(statement: &str) -> String {
    if statement != encryption_key::replace_envelopes(2) {
        return String::new();
    }
    let version = "bigint, uuid, bytea, bytea, bytea";
    format!(" (uuid, {version}, {version})")
}

/// Returns the steps of a plan that read a whole table or index. Accepts scans of the encryption keys, because there are few, of
/// the index of certificates, and of the sample of names. The condition of an index is on a line below its step.
fn whole_scans(plan: &str) -> Vec<&str> {
    let lines: Vec<&str> = plan.lines().collect();
    let reads = lines.iter().enumerate().filter(|(index, line)| {
        let is_read = line.contains("Seq Scan on ") || line.contains(" Scan using ");
        let accepted_parts = [
            "encryption_key k",
            "encryption_key_pkey",
            "encryption_key_activation",
            "credential_certificate_sequence",
        ];
        let above = lines[..*index].last();
        let is_sample =
            line.contains(SAMPLE_OF_NAMES) && above.is_some_and(|above| above.contains("Limit"));
        let is_accepted = is_sample
            || accepted_parts
                .iter()
                .any(|accepted| line.contains(accepted));
        (is_read || line.contains("Bitmap Index Scan on ")) && !is_accepted
    });
    let whole = reads.filter(|(index, step)| {
        let below = lines[index + 1..].iter();
        let mut details = below.take_while(|line| !line.contains("->"));
        step.contains("Seq Scan") || !details.any(|line| line.contains("Index Cond:"))
    });
    whole.map(|(_, step)| *step).collect()
}

/// Returns whether a step reads a whole table or index. Accepts scans of a full-text index with a constraint (after the colon),
/// of intermediate results, constant rows and the sample of names, and of the encryption keys, because there are few.
fn is_whole_scan(step: &str) -> bool {
    let is_constrained = step.contains("VIRTUAL TABLE INDEX") && !step.ends_with("INDEX 0:");
    let is_found = [
        "SCAN l",
        "SCAN chain_link",
        "SCAN text_place",
        "SCAN rare_part",
        "SCAN s",
        "SCAN measured",
        "SCAN summed",
        "SCAN chosen",
        "SCAN used",
    ]
    .contains(&step)
        || step.starts_with("SCAN (subquery-");
    let is_sample = step.starts_with("SCAN sampled USING INDEX");
    let is_short = [
        "SCAN CONSTANT ROW",
        "SCAN 2 CONSTANT ROWS",
        "SCAN 4-ROW VALUES CLAUSE",
        "SCAN k",
        "SCAN resealed",
    ]
    .contains(&step);
    step.starts_with("SCAN") && !is_constrained && !is_found && !is_sample && !is_short
}

/// Returns the scans of credentials and their versions that PostgreSQL executed.
fn executed_scans(plan: &str) -> Vec<&str> {
    let scans = plan.lines().filter(|line| {
        let reads = line.contains("Scan using credential") || line.contains("Scan on credential");
        reads && !line.contains("never executed")
    });
    scans.collect()
}

/// The statements that check permissions and read versions, with the arguments that select the versions.
const READS: [(&StatementOfMany, &str); 3] = [
    (&credential::POSTGRES_PERMITTED_VERSIONS_CURRENT, ""),
    (&credential::POSTGRES_PERMITTED_VERSIONS_NEWEST_FIRST, "1,"),
    (
        &credential::POSTGRES_PERMITTED_VERSION_BY_ID,
        "gen_random_uuid(),",
    ),
];

const PERMISSION_TO_WRITE: &str = "insert into permission (id, path, actor, operations) values (gen_random_uuid(), '/4', 'writer', 2)";

/// Returns the statements that must use an index, whatever the size of the store.
fn indexed_statements(engine: Engine) -> Vec<String> {
    let by_names = [3, credential::NAMES_ONE_BY_ONE_MAX + 1].map(|count| {
        [
            credential::newest_by_names(count),
            credential::newest_sizes_by_names(count),
        ]
    });
    let signed_by = [SignedTypes::All, SignedTypes::Certificates].map(|types| {
        [
            credential::newest_signed_by(types, 3),
            credential::newest_ids_signed_by(types, 3),
            credential::names_signed_by(types, 3),
        ]
    });
    let delete_versions = retention::delete_versions(engine, 3);
    let replace_envelopes = encryption_key::replace_envelopes(2);
    let of_actor_on = permission::of_actor_on(4);
    let built = [delete_versions, replace_envelopes, of_actor_on];
    STATEMENTS_ABOUT_CREDENTIALS
        .iter()
        .chain(STATEMENTS_ABOUT_PERMISSIONS)
        .chain(STATEMENTS_OF_SERVERS)
        .chain(statements_of(engine))
        .map(|&statement| statement.to_owned())
        .chain(built)
        .chain(signed_by.into_iter().flatten())
        .chain(by_names.into_iter().flatten())
        .chain(texts_of(engine))
        .chain(searches(engine))
        .collect()
}

const STATEMENTS_ABOUT_CREDENTIALS: &[&str] = &[
    credential::VERSION_BY_ID,
    credential::NAME_FROM_VERSION_ID,
    credential::NAME_FROM_CREDENTIAL_ID,
    credential::STORED_NAME,
    credential::VERSIONS_NEWEST_FIRST,
    credential::VERSION_IDS_NEWEST_FIRST,
    credential::VERSION_IDS_CURRENT,
    credential::SIZE_OF_VERSIONS,
    credential::SIZE_OF_VERSIONS_OF_CREDENTIAL,
    credential::VERSIONS_OF_CREDENTIAL_NEWEST_FIRST,
    credential::VERSIONS_OF_CREDENTIAL_CURRENT,
    credential::AUTHORITIES,
    credential::CERTIFICATES,
    credential::CERTIFICATE_BY_NAME,
    credential::CERTIFICATES_OF_ALL_TYPES,
    credential::CERTIFICATE_OF_ANY_TYPE_BY_NAME,
    credential::CERTIFICATES_SIGNED_BY,
    credential::ISSUED_BY,
    credential::CREDENTIALS_BY_EXPIRY,
    find::LIST,
    find::COUNT_ALL,
    find::COUNT_BELOW,
    find::TRANSITIONAL_AUTHORITIES,
    append::CREDENTIAL_BY_NAME,
    append::CREDENTIAL_AND_NEWEST_VERSION,
    append::INSERT_CREDENTIAL,
    append::INSERT_INPUT,
    credential::CREDENTIAL_BY_ID,
    credential::VERSION_OF_CREDENTIAL,
    credential::LATEST_CERTIFICATE_OF_CREDENTIAL,
    credential::CLEAR_TRANSITIONAL,
    credential::SET_TRANSITIONAL,
    credential::DELETE_VERSION,
    credential::UPDATE_CREDENTIAL_COLUMNS,
    credential::DELETE_CREDENTIAL,
    credential::DELETE_OLDEST_VERSIONS,
    credential::PING,
    retention::PAGE,
];

/// Statements on permissions with a fixed number of paths.
const STATEMENTS_ABOUT_PERMISSIONS: &[&str] = &[
    permission::OF_ACTOR,
    permission::SOME_OF_ACTOR,
    permission::BY_ID,
    permission::ON_PATH,
    permission::ON_PATH_AFTER,
    permission::GRANT,
    permission::ADD,
    permission::REPLACE_OPERATIONS,
    permission::DELETE,
    permission::DELETE_OF_ACTOR_ON,
];

/// Statements for maintenance by servers and commands.
const STATEMENTS_OF_SERVERS: &[&str] = &[
    encryption_key::INSERT_KEY,
    encryption_key::RESERVE_ENCRYPTIONS,
    encryption_key::KEY_IDS,
    encryption_key::KEYS_IN_USE,
    encryption_key::VERSIONS_BY_KEY,
    encryption_key::ACTIVATE,
    encryption_key::ACTIVATE_NEW,
    encryption_key::LAST_ACTIVATED,
    encryption_key::VERSIONS_UNDER_KEY,
    check::PERMISSIONS,
    check::NOT_CHECKED,
    lease::ACQUIRE,
    lease::RENEW,
    lease::RELEASE,
    connections::PROBE,
    retention::READ_CLOCK,
    retention::WRITE_CLOCK,
];

/// Returns the statements of one engine that have a variable number of parameters.
fn texts_of(engine: Engine) -> Vec<String> {
    match engine {
        Engine::Postgres => [
            permission::postgres_of_actor_on_name(4),
            append::POSTGRES_ADD_VERSIONS.text(1),
            append::POSTGRES_ADD_UNSIGNED_VERSIONS.text(4),
            credential::POSTGRES_PERMITTED_VERSION_BY_ID.text(4),
            credential::POSTGRES_PERMITTED_VERSIONS_CURRENT.text(4),
            credential::POSTGRES_PERMITTED_VERSIONS_NEWEST_FIRST.text(4),
        ]
        .into_iter()
        .chain(append_batches(4))
        .collect(),
        Engine::Sqlite => vec![
            permission::sqlite_of_actor_on_and_end(4),
            permission::sqlite_of_actor_on(4),
            append::SQLITE_ADD_VERSION.clone(),
        ],
    }
}

fn searches(engine: Engine) -> impl Iterator<Item = String> {
    let searches = [
        find::FIND,
        find::FIND_EXPIRING,
        find::EFFECTIVE_EXPIRIES,
        find::GENERATED_BY,
        find::DERIVED_FROM,
    ];
    let statements = searches.into_iter().flat_map(move |search| match engine {
        Engine::Postgres => vec![search.all, search.between, search.postgres_containing],
        Engine::Sqlite => vec![
            search.all,
            search.between,
            search.sqlite_containing,
            search.sqlite_trigrams_between,
        ],
    });
    statements.map(str::to_owned)
}

fn statements_of(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Postgres => &[
            credential::POSTGRES_VERSIONS_CURRENT,
            check::POSTGRES_CREDENTIALS,
            check::POSTGRES_VERSIONS,
            check::POSTGRES_VERSION_BY_ID,
            check::POSTGRES_INDEXED_NAMES,
            check::POSTGRES_ENDS,
            retention::POSTGRES_DELETABLE_VERSIONS,
        ],
        Engine::Sqlite => &[
            check::SQLITE_CREDENTIALS,
            check::SQLITE_VERSIONS,
            check::SQLITE_VERSION_BY_ID,
            check::SQLITE_INDEXED_NAMES,
            check::SQLITE_ENDS,
            retention::SQLITE_DELETABLE_VERSIONS,
            append::SQLITE_POINT_AT_NEW_VERSION,
            credential::SQLITE_NAMED_VERSION_BY_ID,
            credential::SQLITE_NAMED_VERSION_CURRENT,
            credential::SQLITE_NAMED_VERSION_TRANSITIONAL,
            credential::SQLITE_NAMED_VERSIONS_NEWEST_FIRST,
            credential::SQLITE_VERSIONS_CURRENT,
        ],
    }
}

/// SQLite: statements that read current versions. They must not scan all versions of a credential.
const READING_CURRENT_VERSIONS: [&str; 9] = [
    credential::VERSION_BY_ID,
    credential::SQLITE_NAMED_VERSION_CURRENT,
    credential::SQLITE_NAMED_VERSION_TRANSITIONAL,
    credential::SQLITE_VERSIONS_CURRENT,
    credential::VERSION_IDS_CURRENT,
    credential::VERSIONS_OF_CREDENTIAL_CURRENT,
    append::CREDENTIAL_AND_NEWEST_VERSION,
    credential::CLEAR_TRANSITIONAL,
    find::FIND.between,
];

/// SQLite: point reads of requests.
const POINT_READS: [&str; 10] = [
    permission::SOME_OF_ACTOR,
    credential::STORED_NAME,
    credential::VERSION_BY_ID,
    credential::SQLITE_VERSIONS_CURRENT,
    credential::VERSIONS_NEWEST_FIRST,
    credential::VERSIONS_OF_CREDENTIAL_NEWEST_FIRST,
    credential::SQLITE_NAMED_VERSION_BY_ID,
    credential::SQLITE_NAMED_VERSION_CURRENT,
    credential::SQLITE_NAMED_VERSION_TRANSITIONAL,
    credential::SQLITE_NAMED_VERSIONS_NEWEST_FIRST,
];

/// Returns the statements that must read versions in the order of an index, so that they can stop early without sorting.
fn stopping_early(engine: Engine) -> impl Iterator<Item = &'static str> {
    let of_engine = match engine {
        Engine::Postgres => &[
            check::POSTGRES_CREDENTIALS,
            credential::LATEST_CERTIFICATE_OF_CREDENTIAL,
            retention::POSTGRES_DELETABLE_VERSIONS,
        ][..],
        Engine::Sqlite => &[
            check::SQLITE_CREDENTIALS,
            retention::SQLITE_DELETABLE_VERSIONS,
            credential::CERTIFICATES,
            credential::CERTIFICATE_BY_NAME,
            credential::CERTIFICATE_OF_ANY_TYPE_BY_NAME,
            credential::SQLITE_NAMED_VERSIONS_NEWEST_FIRST,
        ],
    };
    [
        credential::VERSIONS_NEWEST_FIRST,
        credential::VERSION_IDS_NEWEST_FIRST,
        credential::VERSIONS_OF_CREDENTIAL_NEWEST_FIRST,
        credential::SIZE_OF_VERSIONS,
        credential::SIZE_OF_VERSIONS_OF_CREDENTIAL,
        credential::UPDATE_CREDENTIAL_COLUMNS,
        retention::PAGE,
    ]
    .into_iter()
    .chain(of_engine.iter().copied())
}
