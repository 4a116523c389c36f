//! Reading versions after a permission check.

use crate::{permission::statements::places, statement::StatementOfMany};

/// SQLite: the version with the id `$3` of the credential with the folded name `$1` and the exact name `$2`.
pub(crate) const SQLITE_NAMED_VERSION_BY_ID: &str = select_version!(
    "from credential_version v join credential c on c.sequence = v.credential_sequence
     where v.id = $3 and c.name_folded = $1 and c.name = $2"
);

/// SQLite: as [`VERSIONS_NEWEST_FIRST`](super::VERSIONS_NEWEST_FIRST), at most `$3`, if the credential has the exact name `$2`.
pub(crate) const SQLITE_NAMED_VERSIONS_NEWEST_FIRST: &str = select_version!(
    "from credential c join credential_version v on v.credential_sequence = c.sequence
     where c.name_folded = $1 and c.name = $2 order by v.sequence desc limit cast($3 as bigint)"
);

/// SQLite: as [`VERSIONS_CURRENT`](super::VERSIONS_CURRENT), if the credential has the exact name `$2`.
pub(crate) const SQLITE_NAMED_VERSIONS_CURRENT: &str = concat!(
    select_version!(
        "from credential c join credential_version v on v.sequence = c.current_sequence
         where c.name_folded = $1 and c.name = $2 union all "
    ),
    select_version!(
        "from credential c join credential_version v on v.credential_sequence = c.sequence
         where c.name_folded = $1 and c.name = $2 and v.is_transitional"
    )
);

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
                places($first_path, count),
                VERSION_OF_NULLS,
                VERSION_OF_NULLS
            )
        }
    };
}

const VERSION_OF_NULLS: &str = "null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, \
    null, null, null, null, null, null, null, null";

pub(crate) static POSTGRES_PERMITTED_VERSION_BY_ID: StatementOfMany =
    StatementOfMany::new(postgres_permitted!(
        6,
        "from credential_version v join credential c on c.sequence = v.credential_sequence
         where (select bool_or(g.operations & $2 <> 0) from permitted g)
            and v.id = $5 and c.name_folded = $3 and c.name = $4"
    ));

/// A range of one sequence, as in `newest_first!`.
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
