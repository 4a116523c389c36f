//! `keywright check` with damage: each kind is caused directly in the database, found, and named.

use std::collections::BTreeSet;

use keywright_harness::{Server, Text, is_on_postgres, without_constraints};
use serde_json::{Value, json};

use crate::given;

/// All damage, in the order in which the test causes it: the SQL, in which `{/name}` is the sequence of that credential, and the
/// kinds and subjects of the expected findings. The prefix `v:` marks the name of a version. No two lines damage the same
/// credential.
const DAMAGES: &str = "
    drop index credential_version_transitional => schema_differs database
    drop table retention_clock => schema_differs database
    update credential set name = '/CASING' where sequence = {/casing} => name_differs v:/CASING
    update credential set credential_type = 'password' where sequence = {/password} => type_differs v:/password
    update credential_version set (nonce, ciphertext) = (select nonce, ciphertext from credential_version where \
        credential_sequence = {/sound}) where credential_sequence = {/copied} \
        => not_authentic v:/copied
    update credential_version set encryption_key_id = {other key} where credential_sequence = {/unknown-key} \
        => key_unknown v:/unknown-key
    update credential_version set encryption_key_id = {absent key} where credential_sequence = {/absent-key} \
        => key_unknown v:/absent-key, key_without_record v:/absent-key
    delete from credential_version where credential_sequence = {/no-version} \
        => credential_without_versions /no-version, newest_differs /no-version, current_differs /no-version
    update credential set newest_created_at = newest_created_at + 1 where sequence = {/newest} \
        => newest_differs /newest
    update credential set current_sequence = null where sequence = {/current} => current_differs /current
    update credential_version set is_transitional = true where credential_sequence = {/transitional}; update credential \
        set current_sequence = null, current_created_at = null where sequence = {/transitional} \
        => several_transitional /transitional
    update credential set name_folded = '/folded-otherwise' where sequence = {/folded} \
        => name_folded_differs /folded, name_not_indexed /folded
    update credential set name = '/mal formed' where sequence = {/malformed} \
        => name_malformed /mal formed, name_folded_differs /mal formed, not_authentic v:/mal formed
    update credential set credential_type = 'no type' where sequence = {/type} \
        => type_malformed /type, row_malformed v:/type
    delete from credential_name where {index row} = {/unindexed} => name_not_indexed /unindexed
    update credential set credential_type = 'json' where sequence = {/value} \
        => value_malformed v:/value, type_differs v:/value
    update credential set credential_type = 'certificate' where sequence = {/no-certificate} \
        => certificate_refused v:/no-certificate, type_differs v:/no-certificate
    update credential_version set expires_at = expires_at + 1000, is_certificate_authority = false, is_self_signed = \
        false, key_length_bits = 1 where credential_sequence = {/columns}; update credential set newest_expires_at = \
        newest_expires_at + 1000 where sequence = {/columns} \
        => certificate_column_differs v:/columns
    update credential_version set expires_at = 1000, is_certificate_authority = false, is_self_signed = false, \
        key_length_bits = 1 where credential_sequence = {/recorded}; update credential set newest_expires_at = 1000 where \
        sequence = {/recorded} \
        => certificate_column_differs v:/recorded
    update credential_version set (issuer_version_id, issuer_expires_at) = (select id, expires_at from \
        credential_version where credential_sequence = {/columns}) where credential_sequence = {/issuer} \
        => issuer_refused v:/issuer, signer_differs v:/issuer, certificate_column_differs v:/issuer
    update credential_version set signed_by_folded = '/stranger' where credential_sequence = {/signer} \
        => signer_differs v:/signer
    insert into credential_version_input (version_sequence, input_name_folded, input_version_id) select sequence, \
        '/sound', id from credential_version where credential_sequence = {/inputs} \
        => inputs_differ v:/inputs
    delete from credential_name where {index row} = {/orphan}; delete from credential where sequence = {/orphan} \
        => version_without_credential v:
    {add to index} {/superfluous} => name_not_indexed /superfluous
    {index otherwise} {/otherwise} => name_not_indexed /otherwise
    {index nothing} => index_entry_without_credential database
    update permission set path = '/a b' where actor = 'path'; update permission set actor = '' where actor = 'actor'; \
        update permission set operations = 32 where actor = 'operations' \
        => path_malformed permission, actor_malformed permission, operations_malformed permission
";

/// The additional finding of SQLite itself.
const FOUND_BY_SQLITE: &str = "database_damaged database";

#[tokio::test]
async fn exactly_the_damaged_records_are_reported() {
    let server = Server::start().await;
    seed(&server).await;
    let sound = server.run_command("check").expect(0);
    assert!(sound.output.ends_with(": 0 findings\n"), "{sound:?}");
    let damages = DAMAGES
        .trim()
        .lines()
        .map(|damage| damage.split_once(" => "));
    let mut expected = BTreeSet::new();
    for (sql, findings) in damages.map(Option::unwrap) {
        let sql = with_placeholders_replaced(sql);
        server.run_sql(&without_constraints(&sql)).await;
        expected.extend(findings.split(", "));
    }
    if !is_on_postgres() {
        expected.insert(FOUND_BY_SQLITE);
    }

    let result = server.run_command("check --json").expect(3);
    let mut lines: Vec<Value> = result
        .output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let summary = lines.pop().unwrap();
    assert_eq!(summary["findings"], json!(lines.len()));
    let found: Vec<String> = lines.iter().map(kind_and_subject).collect();
    let found: BTreeSet<_> = found.iter().map(String::as_str).collect();
    assert_eq!(found, expected, "{}", result.output);

    let as_text = server.run_command("check").expect(3);
    assert_eq!(as_text.output.lines().count(), lines.len() + 1);
    for text in [result.output, as_text.output] {
        text.assert_lacks(SECRET);
    }
}

#[tokio::test]
async fn a_finding_names_credential_version_and_columns() {
    let server = Server::start().await;
    let version = server.issued("/Columns", json!({"self_sign": true})).await;
    let columns = [
        "is_certificate_authority",
        "is_self_signed",
        "key_length_bits",
    ];
    let sql = "update credential_version set
        is_certificate_authority = true, is_self_signed = false, key_length_bits = 0";
    server.run_sql(sql).await;
    let result = server.run_command("check").expect(3);
    let id = given::id(&version);
    let lines = columns.map(|column| {
        format!(
            "certificate_column_differs: credential /Columns version {id}: \
             column {column} does not match the certificate\n"
        )
    });
    let summary = "checked 1 credential with 1 version, and 2 permissions: 3 findings\n";
    assert_eq!(result.output, format!("{}{summary}", lines.concat()));
}

#[tokio::test]
async fn versions_with_a_negative_sequence_are_reported() {
    let server = Server::start().await;
    server.set_value("/a", SECRET).await;
    let sql = "update credential_version set sequence = -1;
        update credential set newest_sequence = -1, current_sequence = -1";
    server.run_sql(&without_constraints(sql)).await;
    let result = server.run_command("check").expect(3);
    let finding = "database_damaged: database: rows of credential_version with a sequence below 1, which are not checked: 1\n";
    result.output.assert_contains(finding);
}

async fn seed(server: &Server) {
    let names = "/sound /copied /unknown-key /absent-key /no-version /newest /current /transitional /transitional \
        /folded /malformed /type /unindexed /superfluous /otherwise /value /recorded /orphan /casing \
        /inputs /password";
    for name in names.split(' ') {
        server.set_value(name, SECRET).await;
    }
    let value = json!({"certificate": SECRET});
    server.stored("/no-certificate", "json", value).await;
    for name in ["/root", "/columns"] {
        server.issued(name, json!({"is_ca": true})).await;
    }
    for name in ["/issuer", "/signer"] {
        server.issued(name, json!({"ca": "/root"})).await;
    }
    for actor in ["path", "actor", "operations"] {
        let body = json!({"path": "/a", "actor": actor, "operations": ["read"]});
        server.post("/api/v2/permissions", body).await.expect(201);
    }
    // A key whose record does not match the configured key.
    let columns = "provider, salt, iterations, canary_nonce, canary_ciphertext, created_at";
    let sql = format!(
        "insert into encryption_key (id, {columns}) select {}, {columns} from encryption_key",
        key_id(1)
    );
    server.run_sql(&sql).await;
}

const SECRET: &str = "the-value-that-no-report-may-hold";

/// Replaces the placeholders for sequences, ids and differences between the engines.
fn with_placeholders_replaced(sql: &str) -> String {
    let (index_row, add_to_index, index_otherwise, index_nothing) = if is_on_postgres() {
        (
            "credential_sequence",
            "update credential_name set parts = array_append(parts, 'zzz') where credential_sequence =",
            "update credential_name set parts = array_replace(parts, 'the', 'zzz') where credential_sequence =",
            "insert into credential_name (credential_sequence, parts) values (424242, array['a'])",
        )
    } else {
        (
            "rowid",
            "delete from credential_name where rowid = {/superfluous};
             insert into credential_name (name_padded, rowid)
             select 'zzz' || name_folded || char(1, 1), sequence from credential where sequence =",
            "delete from credential_name where rowid = {/otherwise};
             insert into credential_name (name_padded, rowid)
             select replace(name_folded, 'the', 'zzz') || char(1, 1), sequence from credential where sequence =",
            "insert into credential_name (rowid, name_padded) values (424242, 'abc')",
        )
    };
    let sql = sql
        .replace("{other key}", &key_id(1))
        .replace("{absent key}", &key_id(2))
        .replace("{index row}", index_row)
        .replace("{add to index}", add_to_index)
        .replace("{index otherwise}", index_otherwise)
        .replace("{index nothing}", index_nothing);
    let mut parts = sql.split("{/");
    let mut completed = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap();
        completed.push_str("(select sequence from credential where name = '/");
        completed.push_str(name);
        completed.push_str("')");
        completed.push_str(rest);
    }
    completed
}

fn key_id(number: u8) -> String {
    if is_on_postgres() {
        format!("'00000000-0000-0000-0000-{number:012}'")
    } else {
        format!("x'{number:032}'")
    }
}

fn kind_and_subject(finding: &Value) -> String {
    let kind = finding["kind"].as_str().unwrap();
    let name = finding["credential"].as_str();
    let subject = if finding["version_id"].is_string() {
        format!("v:{}", name.unwrap_or_default())
    } else if finding["permission_id"].is_string() {
        "permission".to_owned()
    } else {
        name.unwrap_or("database").to_owned()
    };
    format!("{kind} {subject}")
}
