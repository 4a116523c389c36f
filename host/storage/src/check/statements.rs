//! The SQL of a check. Each statement reads a range of one table by sequence, together with the values to compare it with, so
//! that all of them are from one snapshot. Subqueries look up those values for each row, so that no plan reads another table
//! completely.

/// A credential, with the corresponding values of its versions. Its sequence is a range of one value, as in `newest_first!`.
/// The query of the index of names depends on the engine.
macro_rules! select_credentials {
    ($is_indexed:expr) => {
        concat!(
            "select c.sequence, c.name, c.name_folded, c.credential_type,
                c.newest_sequence, c.newest_created_at, c.newest_expires_at, c.current_sequence, c.current_created_at,
                (select v.sequence from credential_version v
                    where v.credential_sequence between c.sequence and c.sequence
                    order by v.credential_sequence desc, v.sequence desc limit 1) as newest_sequence_found,
                (select v.created_at from credential_version v
                    where v.credential_sequence between c.sequence and c.sequence
                    order by v.credential_sequence desc, v.sequence desc limit 1) as newest_created_at_found,
                (select v.expires_at from credential_version v
                    where v.credential_sequence between c.sequence and c.sequence
                    order by v.credential_sequence desc, v.sequence desc limit 1) as newest_expires_at_found,
                (select v.sequence from credential_version v
                    where v.credential_sequence between c.sequence and c.sequence and not v.is_transitional
                    order by v.credential_sequence desc, v.sequence desc limit 1) as current_sequence_found,
                (select v.created_at from credential_version v
                    where v.credential_sequence between c.sequence and c.sequence and not v.is_transitional
                    order by v.credential_sequence desc, v.sequence desc limit 1) as current_created_at_found,
                (select count(*) from credential_version v
                    where v.credential_sequence = c.sequence and v.is_transitional) as transitional_count, ",
            $is_indexed,
            " as is_indexed
            from credential c where c.sequence > $1 and c.sequence <= $2 order by c.sequence limit $3"
        )
    };
}

/// PostgreSQL: the index has exactly the parts of the name.
pub(crate) const POSTGRES_CREDENTIALS: &str = select_credentials!(
    "coalesce((
        select n.parts @> e.parts and n.parts <@ e.parts
        from credential_name n, (
            select array_agg(substr(c.name_folded, first_character, characters)) as parts
            from generate_series(1, length(c.name_folded)) as first_character, generate_series(1, 3) as characters
            where first_character + characters <= length(c.name_folded) + 1
        ) e
        where n.credential_sequence = c.sequence
    ), false)"
);

/// SQLite: the index has a row with as many words as the name has characters. The number has a variable length: seven bits per
/// byte, and the eighth bit if another byte follows. [`SQLITE_WRONG_WORDS`] compares the words themselves: the index is not
/// organised by rows, so querying a single row costs as much as reading all of it.
pub(crate) const SQLITE_CREDENTIALS: &str = select_credentials!(
    "(select hex(d.sz) from credential_name_docsize d where d.id = c.sequence)
    is case when length(c.name_folded) < 128
        then printf('%02X', length(c.name_folded))
        else printf('%02X%02X', 128 + length(c.name_folded) / 128, length(c.name_folded) % 128)
    end"
);

/// SQLite: the first rows of the index with a word that the credential's name does not have at that position. Reads the whole
/// index on purpose.
pub(crate) const SQLITE_WRONG_WORDS: &str = "
    select distinct t.doc as sequence
    from credential_name_trigram t join credential c on c.sequence = t.doc
    where substr(c.name_folded || char(1, 1), t.offset + 1, 3) is not t.term
    limit $1";

/// Selects the columns that `row::stored_version` decodes.
macro_rules! select_versions {
    ($($rest:literal),+) => {
        concat!(
            "select v.id, v.sequence,
                (select c.id from credential c where c.sequence = v.credential_sequence) as credential_id,
                (select c.name from credential c where c.sequence = v.credential_sequence) as name,
                (select c.credential_type from credential c where c.sequence = v.credential_sequence) as credential_type,
                v.created_at, v.is_transitional, v.is_generated, v.expires_at, v.is_certificate_authority, v.is_self_signed,
                v.key_length_bits, v.serial_number, v.signed_by, v.issuer_version_id, v.issuer_expires_at, v.plugin_name,
                v.plugin_version, v.plugin_digest, v.interface_version, v.encryption_key_id, v.nonce, v.ciphertext,
                v.signed_by_folded,
                (select k.id from encryption_key k where k.id = v.encryption_key_id) as recorded_key_id
            from credential_version v where ",
            $($rest),+
        )
    };
}

pub(crate) const VERSIONS: &str =
    select_versions!("v.sequence > $1 and v.sequence <= $2 order by v.sequence limit $3");

pub(crate) const VERSION_BY_ID: &str = select_versions!("v.id = $1");

pub(crate) const POSTGRES_INDEXED_NAMES: &str = "
    select n.credential_sequence as sequence,
        (select c.sequence from credential c where c.sequence = n.credential_sequence) is not null as has_credential
    from credential_name n where n.credential_sequence > $1 and n.credential_sequence <= $2
    order by n.credential_sequence limit $3";

/// SQLite: listing the rows of the index itself would read all words. This table of the index has one row for each.
pub(crate) const SQLITE_INDEXED_NAMES: &str = "
    select n.id as sequence, (select c.sequence from credential c where c.sequence = n.id) is not null as has_credential
    from credential_name_docsize n where n.id > $1 and n.id <= $2 order by n.id limit $3";

pub(crate) const PERMISSIONS: &str = "
    select p.sequence, p.id, p.path, p.actor, p.operations from permission p
    where p.sequence > $1 and p.sequence <= $2 order by p.sequence limit $3";

pub(crate) const POSTGRES_ENDS: &str = "
    select (select max(sequence) from credential) as credentials,
        (select max(sequence) from credential_version) as versions,
        (select max(credential_sequence) from credential_name) as indexed_names,
        (select max(sequence) from permission) as permissions";

pub(crate) const SQLITE_ENDS: &str = "
    select (select max(sequence) from credential) as credentials,
        (select max(sequence) from credential_version) as versions,
        (select max(id) from credential_name_docsize) as indexed_names,
        (select max(sequence) from permission) as permissions";

/// SQLite: every page, index and column constraint, and the structure of the index of names. Reads everything on purpose.
pub(crate) const SQLITE_INTEGRITY: &str = "pragma integrity_check";

/// SQLite: rows with dangling references, by their table and the referenced table. Reads everything on purpose.
pub(crate) const SQLITE_REFERENCES: &str = "
    select \"table\" as \"from\", parent as \"to\", count(*) as rows from pragma_foreign_key_check group by 1, 2";
