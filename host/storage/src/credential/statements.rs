//! The SQL of credentials and their versions.

/// What a version is read from: the columns that `row::stored_version` decodes.
macro_rules! select_version {
    ($($rest:literal),+) => {
        concat!(
            "select v.id, v.sequence, c.id as credential_id, c.name, c.credential_type, v.created_at, v.is_transitional,
                v.is_generated, v.expires_at, v.is_certificate_authority, v.is_self_signed, v.key_length_bits,
                v.signed_by, v.issuer_version_id, v.issuer_expires_at, v.plugin_name, v.plugin_version, v.plugin_digest, v.interface_version,
                v.encryption_key_id, v.nonce, v.ciphertext ",
            $($rest),+
        )
    };
}

/// What a search finds.
macro_rules! select_found {
    ($($rest:expr),+) => {
        concat!(
            "select c.name, c.current_created_at as version_created_at, cast(null as bigint) as expires_at
             from credential c where c.current_sequence is not null and ",
            $($rest),+,
            " order by c.current_sequence desc"
        )
    };
}

/// What a search by expiry finds.
macro_rules! select_found_expiring {
    ($($rest:expr),+) => {
        concat!(
            "select c.name, c.newest_created_at as version_created_at, c.newest_expires_at as expires_at
             from credential c where c.newest_expires_at <= $1 ",
            $($rest),+,
            " order by c.newest_sequence desc"
        )
    };
}

// ---- Reading versions -------------------------------------------------------------------------------------------------

pub(crate) const VERSION_BY_ID: &str = select_version!(
    "from credential_version v join credential c on c.sequence = v.credential_sequence where v.id = $1"
);

pub(crate) const NAME_OF_VERSION: &str = "select c.name
 from credential_version v join credential c on c.sequence = v.credential_sequence where v.id = $1";

/// The type is written out, as in the index of certificates.
pub(crate) const NAME_OF_CERTIFICATE: &str =
    "select c.name from credential c where c.id = $1 and c.credential_type = 'certificate'";

pub(crate) const STORED_NAME: &str = "select c.name from credential c where c.name_folded = $1";

pub(crate) const VERSIONS_NEWEST_FIRST: &str = select_version!(
    "from credential c join credential_version v on v.credential_sequence = c.sequence
     where c.name_folded = $1 order by v.sequence desc limit $2"
);

pub(crate) const VERSIONS_CURRENT: &str = select_version!(
    "from credential c join credential_version v on v.sequence in (
         c.current_sequence,
         (select t.sequence from credential_version t where t.credential_sequence = c.sequence and t.is_transitional)
     )
     where c.name_folded = $1 order by v.is_transitional"
);

/// As [`VERSIONS_NEWEST_FIRST`], the ids alone.
pub(crate) const VERSION_IDS_NEWEST_FIRST: &str = "select v.id
    from credential c join credential_version v on v.credential_sequence = c.sequence
    where c.name_folded = $1 order by v.sequence desc limit $2";

/// As [`VERSIONS_CURRENT`], the ids alone.
pub(crate) const VERSION_IDS_CURRENT: &str = "select v.id
    from credential c join credential_version v on v.sequence in (
        c.current_sequence,
        (select t.sequence from credential_version t where t.credential_sequence = c.sequence and t.is_transitional)
    )
    where c.name_folded = $1 order by v.is_transitional";

/// The newest version of each of `count` names, which are the parameters.
pub(crate) fn newest_by_names(count: usize) -> String {
    let places: Vec<String> = (1..=count).map(|position| format!("${position}")).collect();
    let select = select_version!(
        "from credential c join credential_version v on v.sequence = c.newest_sequence where c.name_folded in"
    );
    format!("{select} ({})", places.join(", "))
}

/// The newest version of each credential of a type of which any version was signed by one of `count` names. The parameters
/// are the type, the most rows, and the names.
pub(crate) fn newest_signed_by(count: usize) -> String {
    let select = select_version!(
        "from credential c join credential_version v on v.sequence = c.newest_sequence"
    );
    signed_by(select, count)
}

/// As [`newest_signed_by`], the ids alone.
pub(crate) fn newest_ids_signed_by(count: usize) -> String {
    let select =
        "select v.id from credential c join credential_version v on v.sequence = c.newest_sequence";
    signed_by(select, count)
}

/// As [`newest_signed_by`], the names, and whether they are authorities.
pub(crate) fn names_signed_by(count: usize) -> String {
    let select = "select c.name, v.is_certificate_authority
         from credential c join credential_version v on v.sequence = c.newest_sequence";
    signed_by(select, count)
}

fn signed_by(select: &str, count: usize) -> String {
    let places: Vec<String> = (3..count + 3)
        .map(|position| format!("${position}"))
        .collect();
    format!(
        "{select} where c.credential_type = $1 and c.sequence in (
             select s.credential_sequence from credential_version s where s.signed_by_folded in ({})
         ) order by c.sequence limit $2",
        places.join(", ")
    )
}

pub(crate) const VERSIONS_OF_CREDENTIAL_NEWEST_FIRST: &str = select_version!(
    "from credential c join credential_version v on v.credential_sequence = c.sequence
     where c.id = $1 order by v.sequence desc limit $2"
);

pub(crate) const VERSIONS_OF_CREDENTIAL_CURRENT: &str = select_version!(
    "from credential c join credential_version v on v.sequence in (
         c.current_sequence,
         (select t.sequence from credential_version t where t.credential_sequence = c.sequence and t.is_transitional)
     )
     where c.id = $1 order by v.is_transitional"
);

// ---- Listing certificates ---------------------------------------------------------------------------------------------

/// The type is written out, as in the index of certificates, which is found by it.
macro_rules! select_certificates {
    ($($rest:literal),*) => {
        concat!(
            "select c.id as credential_id, c.name, v.id, v.is_transitional, v.is_generated, v.expires_at,
                v.is_certificate_authority, v.is_self_signed, v.key_length_bits, v.signed_by
             from credential c join credential_version v on v.credential_sequence = c.sequence
             where c.credential_type = 'certificate' ",
            $($rest,)*
            " order by c.newest_sequence desc, v.sequence desc"
        )
    };
}

pub(crate) const CERTIFICATES: &str = select_certificates!();

pub(crate) const CERTIFICATE_BY_NAME: &str = select_certificates!("and c.name_folded = $1");

pub(crate) const CERTIFICATES_SIGNED_BY: &str = "
    select distinct c.name
    from credential_version v join credential c on c.sequence = v.credential_sequence
    where v.signed_by_folded = $1 and c.credential_type = 'certificate' and c.name_folded <> $1";

/// The number of certificates in each span of time between the parameters, which ascend.
pub(crate) const CERTIFICATES_BY_EXPIRY: &str = "
    select (select count(*) from credential where newest_expires_at <= $1) as until_1,
        (select count(*) from credential where newest_expires_at > $1 and newest_expires_at <= $2) as until_2,
        (select count(*) from credential where newest_expires_at > $2 and newest_expires_at <= $3) as until_3,
        (select count(*) from credential where newest_expires_at > $3 and newest_expires_at <= $4) as until_4,
        (select count(*) from credential where newest_expires_at > $4 and newest_expires_at <= $5) as until_5,
        (select count(*) from credential where newest_expires_at > $5) as later";

// ---- Finding ----------------------------------------------------------------------------------------------------------

pub(crate) const FIND_BELOW: &str = select_found!("c.name_folded >= $1 and c.name_folded < $2");

pub(crate) const FIND_EXPIRING: &str = select_found_expiring!("");

pub(crate) const FIND_EXPIRING_BELOW: &str =
    select_found_expiring!("and c.name_folded >= $2 and c.name_folded < $3");

/// The parts of three characters of the text of a parameter that few names have, eight at most, as `rare_part`: those that none of
/// some names has which happen to come first by their random ids. The time that an index takes for a text is that of all its
/// parts together, and grows with the store for each part that is in most names, as the beginning of a path is. A text that
/// is as short as a word has no rare parts: what they would save, finding them costs.
macro_rules! rare_parts {
    ($text:literal, $position:literal) => {
        concat!(
            "sampled_name as materialized (
                select sampled.name_folded from credential sampled order by sampled.id limit 128
            ),
            rare_part (part) as materialized (
                select substr(",
            $text,
            ", place, 3) from text_place where length(",
            $text,
            ") > 8 and not exists (
                    select 1 from sampled_name s where ",
            $position,
            "(s.name_folded, substr(",
            $text,
            ", place, 3)) > 0
                ) limit 8
            )"
        )
    };
}

/// PostgreSQL: the sequences of the credentials whose names contain the text of a parameter. Its rare parts are looked up, or
/// all its parts of three characters when it has none, or the text itself when it is shorter, and what has them all is looked
/// at. They are gathered first, because the planner, which does not know the text, expects the more of them the larger the
/// store is, and would sooner or later rather read all credentials.
macro_rules! postgres_containing {
    ($text:literal) => {
        concat!(
            "c.sequence = any (array(
                with text_place as materialized (
                    select place from generate_series(1, greatest(length(",
            $text,
            ") - 2, 1)) as place
                ), ",
            rare_parts!($text, "strpos"),
            "
                select n.credential_sequence from credential_name n where n.parts @> coalesce(
                    nullif(array(select part from rare_part), '{}'),
                    array(select substr(",
            $text,
            ", place, 3) from text_place)
                )
            )) and strpos(c.name_folded, ",
            $text,
            ") > 0"
        )
    };
}

pub(crate) const POSTGRES_FIND_CONTAINING: &str = select_found!(postgres_containing!("$1"));

pub(crate) const POSTGRES_FIND_EXPIRING_CONTAINING: &str =
    select_found_expiring!("and ", postgres_containing!("$2"));

/// SQLite: as [`postgres_containing`], for texts of three characters and more. The full-text index is asked for what has all
/// rare parts, or for the text as a phrase.
macro_rules! sqlite_containing {
    ($text:literal) => {
        concat!(
            "c.sequence in (
                select rowid from credential_name where credential_name match (
                    with recursive text_place (place) as (
                        select 1 union all select place + 1 from text_place where place < length(",
            $text,
            ") - 2
                    ), ",
            rare_parts!($text, "instr"),
            "
                    select coalesce(
                        group_concat('\"' || replace(part, '\"', '\"\"') || '\"', ' AND '),
                        '\"' || replace(",
            $text,
            ", '\"', '\"\"') || '\"'
                    ) from rare_part
                )
            ) and instr(c.name_folded, ",
            $text,
            ") > 0"
        )
    };
}

pub(crate) const SQLITE_FIND_CONTAINING: &str = select_found!(sqlite_containing!("$1"));

pub(crate) const SQLITE_FIND_EXPIRING_CONTAINING: &str =
    select_found_expiring!("and ", sqlite_containing!("$2"));

/// SQLite: `$1` and `$2` are the bounds of the trigrams that begin with the text.
pub(crate) const SQLITE_FIND_CONTAINING_SHORT: &str = select_found!(
    "c.sequence in (select doc from credential_name_trigram where term >= $1 and term < $2)"
);

/// SQLite: as [`SQLITE_FIND_CONTAINING_SHORT`], with the bounds in `$2` and `$3`.
pub(crate) const SQLITE_FIND_EXPIRING_CONTAINING_SHORT: &str = select_found_expiring!(
    "and c.sequence in (select doc from credential_name_trigram where term >= $2 and term < $3)"
);

// ---- Expiry with the chain --------------------------------------------------------------------------------------------

/// The links of the chains of versions in use that expire until `$1`, the first to expire first. A chain is walked from
/// each version to the one that signed it; that one is older, so no chain comes back to itself. The farthest link has the
/// depth `$2`.
macro_rules! select_effective_expiries {
    ($($names:expr),*) => {
        concat!(
            "with recursive chain_link as (
                select c.sequence, c.name, c.current_created_at as version_created_at, cast(0 as bigint) as depth,
                    c.name as link_name, v.id as link_id, v.expires_at,
                    v.signed_by, v.issuer_version_id, v.issuer_expires_at
                from credential c join credential_version v on v.sequence = c.current_sequence
                where c.credential_type = 'certificate' and v.expires_at is not null ",
            $($names,)*
            "
                union all
                select l.sequence, l.name, l.version_created_at, l.depth + 1,
                    coalesce(i.name, l.signed_by), v.id, coalesce(v.expires_at, l.issuer_expires_at),
                    v.signed_by, v.issuer_version_id, v.issuer_expires_at
                from chain_link l left join credential_version v on v.id = l.issuer_version_id
                    left join credential i on i.sequence = v.credential_sequence
                where l.issuer_expires_at is not null and l.depth < $2
            )
            select sequence, name, version_created_at, depth, link_name, link_id, expires_at
            from chain_link where expires_at <= $1 order by expires_at, depth, sequence"
        )
    };
}

pub(crate) const EFFECTIVE_EXPIRIES: &str = select_effective_expiries!();

pub(crate) const EFFECTIVE_EXPIRIES_BELOW: &str =
    select_effective_expiries!("and c.name_folded >= $3 and c.name_folded < $4");

pub(crate) const POSTGRES_EFFECTIVE_EXPIRIES_CONTAINING: &str =
    select_effective_expiries!("and ", postgres_containing!("$3"));

pub(crate) const SQLITE_EFFECTIVE_EXPIRIES_CONTAINING: &str =
    select_effective_expiries!("and ", sqlite_containing!("$3"));

/// SQLite: as [`SQLITE_FIND_CONTAINING_SHORT`], with the bounds in `$3` and `$4`.
pub(crate) const SQLITE_EFFECTIVE_EXPIRIES_CONTAINING_SHORT: &str = select_effective_expiries!(
    "and c.sequence in (select doc from credential_name_trigram where term >= $3 and term < $4)"
);

// ---- Writing ----------------------------------------------------------------------------------------------------------

pub(crate) const CREDENTIAL_BY_NAME: &str = "
    select c.sequence, c.id, c.name, c.credential_type, cast(null as uuid) as newest_version_id
    from credential c where c.name_folded = $1";

/// As [`CREDENTIAL_BY_NAME`], with the newest version, for those that decide on it: in PostgreSQL, who has read a version stands
/// in the way of all that add versions beside it.
pub(crate) const CREDENTIAL_AND_NEWEST_VERSION: &str = "
    select c.sequence, c.id, c.name, c.credential_type, v.id as newest_version_id
    from credential c left join credential_version v on v.sequence = c.newest_sequence
    where c.name_folded = $1";

pub(crate) const INSERT_CREDENTIAL: &str = "
    insert into credential (id, name, name_folded, credential_type, created_at)
    values ($1, $2, $3, $4, $5) returning sequence";

macro_rules! insert_version {
    () => {
        "insert into credential_version (
            id, credential_sequence, created_at, is_transitional, is_generated, expires_at, is_certificate_authority,
            is_self_signed, key_length_bits, signed_by, signed_by_folded, issuer_version_id, issuer_expires_at,
            plugin_name, plugin_version, plugin_digest, interface_version, encryption_key_id, nonce, ciphertext
        ) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
        returning sequence"
    };
}

/// The new version is the newest; it is also the current one unless it is transitional. The parameters are those of
/// `insert_version!`.
macro_rules! point_at_new_version {
    ($sequence:literal) => {
        concat!(
            "update credential set newest_created_at = $3, newest_expires_at = $6, newest_sequence = ",
            $sequence,
            ", current_sequence = case when $4 then current_sequence else ",
            $sequence,
            " end, current_created_at = case when $4 then current_created_at else $3 end "
        )
    };
}

/// PostgreSQL: inserts a version and points its credential at it, in one go, because each is a way to the server and back.
/// There is no row when the version's sequence is not behind that of the newest one.
pub(crate) const POSTGRES_ADD_VERSION: &str = concat!(
    "with added as (",
    insert_version!(),
    ") ",
    point_at_new_version!("added.sequence"),
    "from added where credential.sequence = $2
        and (credential.newest_sequence is null or credential.newest_sequence < added.sequence)
     returning added.sequence"
);

/// SQLite: as [`POSTGRES_ADD_VERSION`], two statements in one text, of which the first has the row: each is a hand-over to
/// another thread and back.
pub(crate) const SQLITE_ADD_VERSION: &str = concat!(
    insert_version!(),
    "; ",
    point_at_new_version!("last_insert_rowid()"),
    "where sequence = $2"
);

pub(crate) const CREDENTIAL_BY_ID: &str = "select sequence from credential where id = $1";

pub(crate) const VERSION_OF_CREDENTIAL: &str = "
    select v.sequence, exists (
        select 1 from credential_version o where o.credential_sequence = $2 and o.sequence <> v.sequence
    ) as has_others
    from credential_version v where v.id = $1 and v.credential_sequence = $2";

pub(crate) const LATEST_CERTIFICATE_OF_CREDENTIAL: &str = "
    select sequence from credential_version where credential_sequence = $1 and expires_at is not null
    order by sequence desc limit 1";

pub(crate) const CLEAR_TRANSITIONAL: &str = "
    update credential_version set is_transitional = $2 where credential_sequence = $1 and is_transitional";

pub(crate) const SET_TRANSITIONAL: &str =
    "update credential_version set is_transitional = $2 where sequence = $1";

pub(crate) const DELETE_VERSION: &str = "delete from credential_version where sequence = $1";

/// Makes the repeated columns of a credential say again what its versions say.
pub(crate) const POINT_AT_VERSIONS: &str = "
    update credential set
        (newest_sequence, newest_created_at, newest_expires_at) = (
            select v.sequence, v.created_at, v.expires_at from credential_version v
            where v.credential_sequence = $1 order by v.sequence desc limit 1
        ),
        (current_sequence, current_created_at) = (
            select v.sequence, v.created_at from credential_version v
            where v.credential_sequence = $1 and not v.is_transitional order by v.sequence desc limit 1
        )
    where sequence = $1";

pub(crate) const DELETE_CREDENTIAL: &str =
    "delete from credential where name_folded = $1 returning id";

// ---- Health -----------------------------------------------------------------------------------------------------------

/// Reads a page, and fails when it can't.
pub(crate) const PING: &str = "select count(*) from encryption_key where id = $1";
