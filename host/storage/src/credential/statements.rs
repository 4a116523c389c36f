//! The SQL of credentials and their versions. The SQL of searches is in `find/statements.rs`, and the SQL that adds versions in
//! `append.rs`.

use keywright_core::ports::SignedTypes;

use super::row::{due_at, version_columns};
use crate::statement::{StatementOfMany, placeholders};

/// The columns that `row::stored_version_from` decodes.
macro_rules! select_version {
    ($($rest:literal),+) => {
        concat!(
            "select v.id, v.sequence, c.id as credential_id, c.name, c.credential_type, ",
            version_columns!(),
            " ",
            $($rest),+
        )
    };
}

// ---- Reading versions -------------------------------------------------------------------------------------------------

pub(crate) const VERSION_BY_ID: &str = select_version!(
    "from credential_version v join credential c on c.sequence = v.credential_sequence where v.id = $1"
);

/// The name of the version with the first id from `$1` on. So an unknown id takes the same work as a known one, and the time of a
/// refusal does not reveal which it is.
pub(crate) const NAME_FROM_VERSION_ID: &str = "select v.id, c.name
 from credential_version v join credential c on c.sequence = v.credential_sequence where v.id >= $1 order by v.id limit 1";

/// Like [`NAME_FROM_VERSION_ID`], of the credential with the first id from `$1` on, and its type.
pub(crate) const NAME_FROM_CREDENTIAL_ID: &str = "select c.id, c.name, c.credential_type from credential c where c.id >= $1 order by c.id limit 1";

pub(crate) const STORED_NAME: &str = "select c.name from credential c where c.name_folded = $1";

/// The versions of one credential, newest first. The condition is a range that contains only this credential, and the order is
/// by credential and version: only the index of versions has that order. With an order by version alone and a small limit,
/// PostgreSQL may scan the versions of the whole store backwards until it reaches this credential. SQLite would prepare `limit $2`
/// again for each value, so the limit is an expression.
macro_rules! newest_first {
    ($select:expr, $credential:literal) => {
        concat!(
            $select,
            " from credential_version v join credential c on c.sequence = v.credential_sequence
             where v.credential_sequence between (select n.sequence from credential n where n.",
            $credential,
            " = $1) and (select n.sequence from credential n where n.",
            $credential,
            " = $1) order by v.credential_sequence desc, v.sequence desc limit cast($2 as bigint)"
        )
    };
}

pub(crate) const VERSIONS_NEWEST_FIRST: &str = newest_first!(select_version!(""), "name_folded");

/// The active version of one credential, then the transitional version.
macro_rules! current {
    ($select:expr, $credential:literal) => {
        concat!(
            $select,
            " from credential c join credential_version v on v.sequence in (
                 c.current_sequence,
                 (select t.sequence from credential_version t where t.credential_sequence = c.sequence and t.is_transitional)
             )
             where c.",
            $credential,
            " = $1 order by v.is_transitional"
        )
    };
}

pub(crate) const POSTGRES_VERSIONS_CURRENT: &str = current!(select_version!(""), "name_folded");

/// SQLite: the active version of a credential.
macro_rules! sqlite_current {
    ($condition:literal) => {
        select_version!(
            "from credential c join credential_version v on v.sequence = c.current_sequence where ",
            $condition
        )
    };
}

/// SQLite: the transitional version of a credential.
macro_rules! sqlite_transitional {
    ($condition:literal) => {
        select_version!(
            "from credential c join credential_version v on v.credential_sequence = c.sequence and v.is_transitional where ",
            $condition
        )
    };
}

/// SQLite: as [`POSTGRES_VERSIONS_CURRENT`]. With `in` and `order by`, SQLite would copy the rows into temporary tables first.
pub(crate) const SQLITE_VERSIONS_CURRENT: &str = concat!(
    sqlite_current!("c.name_folded = $1"),
    " union all ",
    sqlite_transitional!("c.name_folded = $1")
);

/// Like [`VERSIONS_NEWEST_FIRST`], but only the ids and the transitional flags.
pub(crate) const VERSION_IDS_NEWEST_FIRST: &str =
    newest_first!("select v.id, v.is_transitional", "name_folded");

/// Like [`POSTGRES_VERSIONS_CURRENT`], but only the ids and the transitional flags.
pub(crate) const VERSION_IDS_CURRENT: &str =
    current!("select v.id, v.is_transitional", "name_folded");

/// The number and the size of the versions that [`VERSIONS_NEWEST_FIRST`] reads.
macro_rules! size_of_newest {
    ($credential:literal) => {
        concat!(
            "select count(*) as versions, cast(coalesce(sum(chosen.size), 0) as bigint) as ciphertext_bytes from (",
            newest_first!("select length(v.ciphertext) as size", $credential),
            ") chosen"
        )
    };
}

pub(crate) const SIZE_OF_VERSIONS: &str = size_of_newest!("name_folded");

pub(crate) const SIZE_OF_VERSIONS_OF_CREDENTIAL: &str = size_of_newest!("id");

/// Selects the stored name of each of `count` names (the parameters), with the size of its latest version.
pub(crate) fn newest_sizes_by_names(count: usize) -> String {
    of_each_name(
        "select c.name, cast(length(v.ciphertext) as bigint) as ciphertext_bytes
         from credential c join credential_version v on v.sequence = c.newest_sequence where c.name_folded",
        count,
    )
}

/// Selects the latest version of each of `count` names (the parameters), unless the stored name has another casing. Each name
/// follows its folded form.
pub(crate) fn newest_by_names(count: usize) -> String {
    let select = select_version!(
        "from credential c join credential_version v on v.sequence = c.newest_sequence where c.name_folded"
    );
    let pairs =
        (1..=count).map(|number| (format!("${}", 2 * number - 1), format!("${}", 2 * number)));
    if count > NAMES_ONE_BY_ONE_MAX {
        let (folded, names): (Vec<_>, Vec<_>) = pairs.unzip();
        let (folded, names) = (folded.join(", "), names.join(", "));
        return format!("{select} in ({folded}) and c.name in ({names})");
    }
    let each = pairs.map(|(folded, name)| format!("{select} = {folded} and c.name = {name}"));
    each.collect::<Vec<_>>().join(" union all ")
}

pub(crate) static NEWEST_SIZES_BY_NAMES: StatementOfMany =
    StatementOfMany::new(newest_sizes_by_names);
pub(crate) static NEWEST_BY_NAMES: StatementOfMany =
    StatementOfMany::new(|parameters| newest_by_names(parameters / 2));

/// Looks up a few names one by one, because SQLite copies the values of `in` into a temporary table first.
fn of_each_name(select: &str, count: usize) -> String {
    if count > NAMES_ONE_BY_ONE_MAX {
        return format!("{select} in ({})", placeholders(1, count));
    }
    let each: Vec<String> = (1..=count)
        .map(|number| format!("{select} = ${number}"))
        .collect();
    each.join(" union all ")
}

/// The maximum number of names that are looked up one by one.
pub(crate) const NAMES_ONE_BY_ONE_MAX: usize = 16;

/// Selects the latest version of each credential that one of `count` names signed. The parameters are the type of certificates,
/// the maximum number of rows, and the names.
pub(crate) fn newest_signed_by(types: SignedTypes, count: usize) -> String {
    let select = select_version!(
        "from credential c join credential_version v on v.sequence = c.newest_sequence"
    );
    signed_by(select, types, count)
}

/// Like [`newest_signed_by`], but selects only the ids and the transitional flags.
pub(crate) fn newest_ids_signed_by(types: SignedTypes, count: usize) -> String {
    let select = "select v.id, v.is_transitional
         from credential c join credential_version v on v.sequence = c.newest_sequence";
    signed_by(select, types, count)
}

/// Like [`newest_signed_by`], but selects the names, and whether they are CAs.
pub(crate) fn names_signed_by(types: SignedTypes, count: usize) -> String {
    let select = "select c.name, c.credential_type, v.is_certificate_authority
         from credential c join credential_version v on v.sequence = c.newest_sequence";
    signed_by(select, types, count)
}

/// Selects a credential of type certificate if one of the names signed any of its versions, and its latest version has a
/// certificate: nothing can be generated from it otherwise. Selects a credential of another type if one of the names signed its
/// latest version. A signed version that was set, not generated, counts only if it has a certificate.
fn signed_by(select: &str, types: SignedTypes, count: usize) -> String {
    let signers = placeholders(3, count);
    let of_other_types = match types {
        SignedTypes::All => {
            format!(" or (c.credential_type <> $1 and v.signed_by_folded in ({signers}))")
        }
        SignedTypes::Certificates => String::new(),
    };
    format!(
        "{select} where ((c.credential_type = $1 and v.expires_at is not null){of_other_types}) and c.sequence in (
             select s.credential_sequence from credential_version s
             where s.signed_by_folded in ({signers}) and (s.is_generated or s.expires_at is not null)
         ) order by c.sequence limit $2"
    )
}

/// The credentials of other types than certificate whose latest version this name signed. Omits imported versions, because
/// nothing proves who signed them.
pub(crate) const ISSUED_BY: &str = "
    select c.name, c.credential_type, v.id, v.issuer_version_id, v.serial_number, v.expires_at
    from credential_version v
        join credential c on c.sequence = v.credential_sequence and c.newest_sequence = v.sequence
    where v.signed_by_folded = $1 and c.credential_type <> 'certificate' and v.is_generated order by c.name_folded";

pub(crate) const VERSIONS_OF_CREDENTIAL_NEWEST_FIRST: &str =
    newest_first!(select_version!(""), "id");

pub(crate) const VERSIONS_OF_CREDENTIAL_CURRENT: &str = current!(select_version!(""), "id");

// ---- Reading versions after a permission check -----------------------------------------------------------------------

/// SQLite: the version with the id `$3` of the credential with the folded name `$1` and the exact name `$2`.
pub(crate) const SQLITE_NAMED_VERSION_BY_ID: &str = select_version!(
    "from credential_version v join credential c on c.sequence = v.credential_sequence
     where v.id = $3 and c.name_folded = $1 and c.name = $2"
);

/// SQLite: as [`VERSIONS_NEWEST_FIRST`], at most `$3`, if the credential has the exact name `$2`.
pub(crate) const SQLITE_NAMED_VERSIONS_NEWEST_FIRST: &str = select_version!(
    "from credential c join credential_version v on v.credential_sequence = c.sequence
     where c.name_folded = $1 and c.name = $2 order by v.sequence desc limit cast($3 as bigint)"
);

/// SQLite: the active version, if the credential has the exact name `$2`.
pub(crate) const SQLITE_NAMED_VERSION_CURRENT: &str =
    sqlite_current!("c.name_folded = $1 and c.name = $2");

/// SQLite: the transitional version, if the credential has the exact name `$2`. Only certificates have one.
pub(crate) const SQLITE_NAMED_VERSION_TRANSITIONAL: &str =
    sqlite_transitional!("c.name_folded = $1 and c.name = $2");

/// PostgreSQL: the permissions of the actor `$1` on any of `count` paths, the last parameters. If one of them includes the
/// operation `$2`, also the stored name of the credential with the folded name `$3` and, if that name is `$4`, versions of it.
/// Otherwise the credential is not read: the condition depends on no row, so PostgreSQL evaluates it first.
macro_rules! postgres_permitted {
    ($first_path:expr, $($versions:literal),+) => {
        |count| {
            format!(
                concat!(
                    "with permitted as materialized (
                        select p.id, p.path, p.actor, p.operations from permission p where p.actor = $1 and p.path in ({})
                    ) (select cast(null as uuid) as permission_id, cast(null as text) as path, cast(null as text) as actor,
                        cast(null as bigint) as operations, cast(null as text) as stored_name, version.* from (",
                    select_version!($($versions),+),
                    ") version)
                    union all select p.id, p.path, p.actor, p.operations, null, {} from permitted p
                    union all select null, null, null, null, n.name, {} from credential n
                    where (select bool_or(g.operations & $2 <> 0) from permitted g) and n.name_folded = $3"
                ),
                placeholders($first_path, count),
                version_of_nulls(),
                version_of_nulls()
            )
        }
    };
}

/// Returns a null for each column of `select_version!`.
fn version_of_nulls() -> String {
    let columns = select_version!("").split(',');
    columns.map(|_| "null").collect::<Vec<_>>().join(", ")
}

pub(crate) static POSTGRES_PERMITTED_VERSION_BY_ID: StatementOfMany =
    StatementOfMany::new(postgres_permitted!(
        6,
        "from credential_version v join credential c on c.sequence = v.credential_sequence
         where (select bool_or(g.operations & $2 <> 0) from permitted g)
            and v.id = $5 and c.name_folded = $3 and c.name = $4"
    ));

/// The condition on the sequence is a range of one value, as in `newest_first!`.
pub(crate) static POSTGRES_PERMITTED_VERSIONS_NEWEST_FIRST: StatementOfMany =
    StatementOfMany::new(postgres_permitted!(
        6,
        "from credential_version v join credential c on c.sequence = v.credential_sequence
         where (select bool_or(g.operations & $2 <> 0) from permitted g) and v.credential_sequence between
            (select n.sequence from credential n where n.name_folded = $3 and n.name = $4)
            and (select n.sequence from credential n where n.name_folded = $3 and n.name = $4)
         order by v.credential_sequence desc, v.sequence desc limit $5"
    ));

pub(crate) static POSTGRES_PERMITTED_VERSIONS_CURRENT: StatementOfMany =
    StatementOfMany::new(postgres_permitted!(
        5,
        "from credential c join credential_version v on v.sequence in (
             c.current_sequence,
             (select t.sequence from credential_version t where t.credential_sequence = c.sequence and t.is_transitional)
         )
         where (select bool_or(g.operations & $2 <> 0) from permitted g)
            and c.name_folded = $3 and c.name = $4 order by v.is_transitional"
    ));

// ---- Listing certificates ---------------------------------------------------------------------------------------------

/// The condition on a credential's sequence is a range of one value, as in `newest_first!`, so that its versions are looked up and
/// not joined with all credentials.
macro_rules! select_listed {
    ($from:literal, $condition:expr) => {
        concat!(
            "select c.id as credential_id, c.name, v.id, v.is_transitional, v.is_generated, v.expires_at,
                v.is_certificate_authority, v.is_self_signed, v.key_length_bits, v.serial_number, v.signed_by,
                c.credential_type, c.newest_sequence as newest_sequence, c.sequence as listed_sequence,
                v.credential_sequence as credential_sequence, v.sequence as version_sequence
             from ",
            $from,
            " join credential_version v on v.credential_sequence between c.sequence and c.sequence where ",
            $condition
        )
    };
}

/// The two sequences of the credential, which are equal, let SQLite read the versions in the order of its indexes. Otherwise it
/// sorts all versions of a credential in memory.
macro_rules! newest_certificate_first {
    ($($select:expr),+) => {
        concat!(
            $($select,)+
            " order by newest_sequence desc, listed_sequence desc, credential_sequence desc, version_sequence desc"
        )
    };
}

/// The type is a literal, to match the index of certificates.
macro_rules! select_certificates {
    ($($condition:literal),*) => {
        select_listed!("credential c", concat!("c.credential_type = 'certificate'" $(, $condition)*))
    };
}

pub(crate) const CERTIFICATES: &str = newest_certificate_first!(select_certificates!());

/// The certificates whose latest version is a CA. Equal sequences are written as in [`CERTIFICATES_OF_ALL_TYPES`].
/// This order makes SQLite sort; otherwise it would read the versions of all certificates.
pub(crate) const AUTHORITIES: &str = concat!(
    select_listed!(
        "credential_version n
            join credential c on c.sequence between n.credential_sequence and n.credential_sequence
                and c.newest_sequence - n.sequence = 0",
        "n.is_certificate_authority and n.credential_sequence > 0 and c.credential_type = 'certificate'"
    ),
    " order by newest_sequence desc, version_sequence desc"
);

pub(crate) const CERTIFICATE_BY_NAME: &str =
    newest_certificate_first!(select_certificates!(" and c.name_folded = $1"));

/// Whether the latest version of a credential has the facts of a certificate. The time in `newest_expires_at` can also be the
/// lifetime that a plugin returned.
macro_rules! newest_has_certificate {
    () => {
        "(select n.expires_at from credential_version n where n.sequence = c.newest_sequence) is not null"
    };
}

/// Like [`CERTIFICATES`], with the credentials of other types whose latest version has the facts of a certificate, or a signer
/// without them: older releases stored only the signer. Equal sequences are written as a difference, so that no plan begins
/// with a scan of all credentials.
pub(crate) const CERTIFICATES_OF_ALL_TYPES: &str = newest_certificate_first!(
    select_certificates!(),
    " union all ",
    select_listed!(
        "credential c",
        concat!(
            "c.credential_type <> 'certificate' and c.newest_expires_at > -9223372036854775807 and ",
            newest_has_certificate!()
        )
    ),
    " union all ",
    select_listed!(
        "credential_version n
            join credential c on c.sequence between n.credential_sequence and n.credential_sequence
                and c.newest_sequence - n.sequence = 0",
        "n.credential_sequence > 0 and n.signed_by_folded is not null and n.expires_at is null
            and c.credential_type <> 'certificate'"
    )
);

pub(crate) const CERTIFICATE_OF_ANY_TYPE_BY_NAME: &str = newest_certificate_first!(select_listed!(
    "credential c",
    concat!(
        "c.name_folded = $1 and (c.credential_type = 'certificate' or ",
        newest_has_certificate!(),
        " or (
            select n.signed_by_folded from credential_version n where n.sequence = c.newest_sequence
        ) is not null)"
    )
));

pub(crate) const CERTIFICATES_SIGNED_BY: &str = "
    select distinct c.name
    from credential_version v join credential c on c.sequence = v.credential_sequence
    where v.signed_by_folded = $1 and v.expires_at is not null and c.credential_type = 'certificate'
        and c.name_folded <> $1";

/// The number of credentials of each type whose latest version is due in each interval between the parameters, which must ascend,
/// with certificates and without.
pub(crate) const CREDENTIALS_BY_EXPIRY: &str = concat!(
    "select c.credential_type,
        case when c.credential_type = 'certificate' then true else ",
    newest_has_certificate!(),
    " end as has_certificate,
        count(case when c.newest_expires_at <= $1 then 1 end) as until_1,
        count(case when c.newest_expires_at > $1 and c.newest_expires_at <= $2 then 1 end) as until_2,
        count(case when c.newest_expires_at > $2 and c.newest_expires_at <= $3 then 1 end) as until_3,
        count(case when c.newest_expires_at > $3 and c.newest_expires_at <= $4 then 1 end) as until_4,
        count(case when c.newest_expires_at > $4 and c.newest_expires_at <= $5 then 1 end) as until_5,
        count(case when c.newest_expires_at > $5 then 1 end) as later
     from credential c where c.newest_expires_at > -9223372036854775807 group by 1, 2"
);

// ---- Writing ----------------------------------------------------------------------------------------------------------

pub(crate) const CREDENTIAL_BY_ID: &str = "select sequence from credential where id = $1";

pub(crate) const VERSION_OF_CREDENTIAL: &str = "
    select v.sequence, exists (
        select 1 from credential_version o where o.credential_sequence = $2 and o.sequence <> v.sequence
    ) as has_others
    from credential_version v where v.id = $1 and v.credential_sequence = $2";

/// The condition on the sequence is a range of one value, as in `newest_first!`.
pub(crate) const LATEST_CERTIFICATE_OF_CREDENTIAL: &str = "
    select sequence from credential_version where credential_sequence between $1 and $1 and expires_at is not null
    order by credential_sequence desc, sequence desc limit 1";

pub(crate) const CLEAR_TRANSITIONAL: &str = "
    update credential_version set is_transitional = $2 where credential_sequence = $1 and is_transitional";

pub(crate) const SET_TRANSITIONAL: &str =
    "update credential_version set is_transitional = $2 where sequence = $1";

pub(crate) const DELETE_VERSION: &str = "delete from credential_version where sequence = $1";

/// Updates the columns of a credential that repeat values of its versions. The condition on the sequence is a range of one value, as
/// in `newest_first!`.
pub(crate) const UPDATE_CREDENTIAL_COLUMNS: &str = concat!(
    "update credential set
        (newest_sequence, newest_created_at, newest_expires_at) = (
            select v.sequence, v.created_at, ",
    due_at!(),
    " from credential_version v
            where v.credential_sequence between $1 and $1 order by v.credential_sequence desc, v.sequence desc limit 1
        ),
        (current_sequence, current_created_at) = (
            select v.sequence, v.created_at from credential_version v
            where v.credential_sequence between $1 and $1 and not v.is_transitional
            order by v.credential_sequence desc, v.sequence desc limit 1
        )
    where sequence = $1"
);

/// The sequence of the credential with the folded name `$1` and the name `$2`.
macro_rules! named {
    () => {
        "(select c.sequence from credential c where c.name_folded = $1 and c.name = $2)"
    };
}

/// The sequence of the newest of its versions beyond `$3`, or null.
macro_rules! beyond_newest {
    () => {
        concat!(
            "(select o.sequence from credential_version o where o.credential_sequence between ",
            named!(),
            " and ",
            named!(),
            " order by o.credential_sequence desc, o.sequence desc limit 1 offset $3)"
        )
    };
}

/// Deletes a credential, unless it has more than `$3` versions.
pub(crate) const DELETE_CREDENTIAL: &str = concat!(
    "delete from credential where name_folded = $1 and name = $2 and ",
    beyond_newest!(),
    " is null returning id"
);

/// Deletes at most `$3` versions of a credential, the oldest first, and keeps the newest `$3`. The columns of the credential repeat
/// only values of its two newest versions.
pub(crate) const DELETE_OLDEST_VERSIONS: &str = concat!(
    "delete from credential_version where sequence in (
        select v.sequence from credential_version v where v.credential_sequence between ",
    named!(),
    " and ",
    named!(),
    " and v.sequence <= ",
    beyond_newest!(),
    " order by v.credential_sequence, v.sequence limit $3
    ) returning id"
);

// ---- Health -----------------------------------------------------------------------------------------------------------

/// Reads a page, and fails if it can't.
pub(crate) const PING: &str = "select count(*) from encryption_key where id = $1";
