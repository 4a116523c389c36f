//! The statements whose plans are tested.

use keywright_core::ports::SignedTypes;

use crate::{
    check::statements as check,
    connections::{Engine, write_probe},
    credential::{append_batches, retention::statements as retention, statements as credential},
    encryption_key, key_rotation, lease,
    permission::statements as permission,
    retention_clock,
};

/// Returns the statements that must read by index, however much is stored.
pub(super) fn indexed_statements(engine: Engine) -> Vec<String> {
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
    let replace_envelopes = key_rotation::statements::replace_envelopes(2);
    let of_actor_on = permission::of_actor_on(4);
    [
        credential::VERSION_BY_ID,
        credential::NAME_OF_VERSION,
        credential::NAME_OF_CERTIFICATE,
        credential::STORED_NAME,
        credential::VERSIONS_NEWEST_FIRST,
        credential::VERSIONS_CURRENT,
        credential::VERSION_IDS_NEWEST_FIRST,
        credential::VERSION_IDS_CURRENT,
        credential::SIZE_OF_VERSIONS,
        credential::SIZE_OF_VERSIONS_OF_CREDENTIAL,
        credential::VERSIONS_OF_CREDENTIAL_NEWEST_FIRST,
        credential::VERSIONS_OF_CREDENTIAL_CURRENT,
        credential::CERTIFICATES,
        credential::CERTIFICATE_BY_NAME,
        credential::CERTIFICATES_SIGNED_BY,
        credential::ISSUED_BY,
        credential::CERTIFICATES_BY_EXPIRY,
        credential::FIND_BELOW,
        credential::FIND_EXPIRING,
        credential::FIND_EXPIRING_BELOW,
        credential::EFFECTIVE_EXPIRIES,
        credential::EFFECTIVE_EXPIRIES_BELOW,
        credential::GENERATED_BY,
        credential::GENERATED_BY_BELOW,
        credential::CREDENTIAL_BY_NAME,
        credential::CREDENTIAL_AND_NEWEST_VERSION,
        credential::INSERT_CREDENTIAL,
        credential::CREDENTIAL_BY_ID,
        credential::VERSION_OF_CREDENTIAL,
        credential::LATEST_CERTIFICATE_OF_CREDENTIAL,
        credential::CLEAR_TRANSITIONAL,
        credential::SET_TRANSITIONAL,
        credential::DELETE_VERSION,
        credential::POINT_AT_VERSIONS,
        credential::DELETE_CREDENTIAL,
        credential::PING,
        retention::PAGE,
        &delete_versions,
        &replace_envelopes,
        &of_actor_on,
    ]
    .iter()
    .chain(STATEMENTS_ABOUT_PERMISSIONS)
    .chain(STATEMENTS_OF_SERVERS)
    .chain(statements_of(engine))
    .map(|&statement| statement.to_owned())
    .chain(signed_by.into_iter().flatten())
    .chain(batches(engine))
    .chain(by_names.into_iter().flatten())
    .chain(texts_of(engine))
    .collect()
}

fn batches(engine: Engine) -> Vec<String> {
    match engine {
        Engine::Postgres => append_batches(4).to_vec(),
        Engine::Sqlite => Vec::new(),
    }
}

/// Statements on permissions with a fixed number of paths.
const STATEMENTS_ABOUT_PERMISSIONS: &[&str] = &[
    permission::OF_ACTOR,
    permission::SOME_OF_ACTOR,
    permission::BY_ID,
    permission::ON_PATH,
    permission::GRANT,
    permission::ADD,
    permission::REPLACE_OPERATIONS,
    permission::DELETE,
    permission::DELETE_OF_ACTOR_ON,
];

/// Statements for maintenance by servers and commands.
const STATEMENTS_OF_SERVERS: &[&str] = &[
    encryption_key::statements::INSERT_KEY,
    encryption_key::statements::RESERVE_ENCRYPTIONS,
    encryption_key::statements::KEY_IDS,
    encryption_key::statements::KEYS_IN_USE,
    encryption_key::statements::VERSIONS_BY_KEY,
    key_rotation::statements::ACTIVATE,
    key_rotation::statements::ACTIVATE_NEW,
    key_rotation::statements::LAST_ACTIVATED,
    key_rotation::statements::VERSIONS_UNDER_KEY,
    check::VERSIONS,
    check::VERSION_BY_ID,
    check::PERMISSIONS,
    lease::statements::ACQUIRE,
    lease::statements::RENEW,
    lease::statements::RELEASE,
    write_probe::statements::PROBE,
    retention_clock::statements::READ,
    retention_clock::statements::WRITE,
];

/// Returns the statements of one engine that have a variable number of parameters.
fn texts_of(engine: Engine) -> Vec<String> {
    match engine {
        Engine::Postgres => vec![
            permission::postgres_of_actor_on_name(4),
            credential::POSTGRES_PERMITTED_VERSION_BY_ID.text(4),
            credential::POSTGRES_PERMITTED_VERSIONS_CURRENT.text(4),
            credential::POSTGRES_PERMITTED_VERSIONS_NEWEST_FIRST.text(4),
        ],
        Engine::Sqlite => vec![permission::sqlite_of_actor_on(4)],
    }
}

/// Returns the statements of one engine.
fn statements_of(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::Postgres => &[
            check::POSTGRES_CREDENTIALS,
            check::POSTGRES_INDEXED_NAMES,
            check::POSTGRES_ENDS,
            retention::POSTGRES_DELETABLE_VERSIONS,
            credential::POSTGRES_ADD_VERSION,
            credential::POSTGRES_FIND_CONTAINING,
            credential::POSTGRES_FIND_EXPIRING_CONTAINING,
            credential::POSTGRES_EFFECTIVE_EXPIRIES_CONTAINING,
            credential::POSTGRES_GENERATED_BY_CONTAINING,
        ],
        Engine::Sqlite => &[
            check::SQLITE_CREDENTIALS,
            check::SQLITE_INDEXED_NAMES,
            check::SQLITE_ENDS,
            retention::SQLITE_DELETABLE_VERSIONS,
            credential::SQLITE_ADD_VERSION,
            credential::SQLITE_POINT_AT_NEW_VERSION,
            credential::SQLITE_NAMED_VERSION_BY_ID,
            credential::SQLITE_NAMED_VERSIONS_CURRENT,
            credential::SQLITE_NAMED_VERSIONS_NEWEST_FIRST,
            credential::SQLITE_FIND_CONTAINING,
            credential::SQLITE_FIND_EXPIRING_CONTAINING,
            credential::SQLITE_FIND_CONTAINING_SHORT,
            credential::SQLITE_FIND_EXPIRING_CONTAINING_SHORT,
            credential::SQLITE_EFFECTIVE_EXPIRIES_CONTAINING,
            credential::SQLITE_EFFECTIVE_EXPIRIES_CONTAINING_SHORT,
            credential::SQLITE_GENERATED_BY_CONTAINING,
        ],
    }
}

/// Statements that read current versions. They must not scan all versions of a credential.
pub(super) const READING_WHAT_COUNTS: [&str; 7] = [
    credential::VERSION_BY_ID,
    credential::VERSIONS_CURRENT,
    credential::VERSION_IDS_CURRENT,
    credential::VERSIONS_OF_CREDENTIAL_CURRENT,
    credential::CREDENTIAL_AND_NEWEST_VERSION,
    credential::CLEAR_TRANSITIONAL,
    credential::FIND_BELOW,
];

/// SQLite: point reads of requests.
pub(super) const POINT_READS: [&str; 9] = [
    permission::SOME_OF_ACTOR,
    credential::STORED_NAME,
    credential::VERSION_BY_ID,
    credential::VERSIONS_CURRENT,
    credential::VERSIONS_NEWEST_FIRST,
    credential::VERSIONS_OF_CREDENTIAL_NEWEST_FIRST,
    credential::SQLITE_NAMED_VERSION_BY_ID,
    credential::SQLITE_NAMED_VERSIONS_CURRENT,
    credential::SQLITE_NAMED_VERSIONS_NEWEST_FIRST,
];

/// Returns the statements that read versions in order and must stop early.
pub(super) fn stopping_early(engine: Engine) -> impl Iterator<Item = &'static str> {
    let of_engine = match engine {
        Engine::Postgres => &[
            check::POSTGRES_CREDENTIALS,
            retention::POSTGRES_DELETABLE_VERSIONS,
        ][..],
        Engine::Sqlite => &[
            check::SQLITE_CREDENTIALS,
            retention::SQLITE_DELETABLE_VERSIONS,
            credential::SQLITE_NAMED_VERSIONS_NEWEST_FIRST,
        ],
    };
    [
        credential::VERSIONS_NEWEST_FIRST,
        credential::VERSION_IDS_NEWEST_FIRST,
        credential::VERSIONS_OF_CREDENTIAL_NEWEST_FIRST,
        credential::SIZE_OF_VERSIONS,
        credential::SIZE_OF_VERSIONS_OF_CREDENTIAL,
        credential::LATEST_CERTIFICATE_OF_CREDENTIAL,
        credential::POINT_AT_VERSIONS,
        retention::PAGE,
    ]
    .into_iter()
    .chain(of_engine.iter().copied())
}
