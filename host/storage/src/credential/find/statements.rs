//! The SQL of searches, of counting credentials by type, and of listing CAs with a transitional version.

/// The statements of a search, one for each way to search the names.
pub(crate) struct ByNames {
    pub(crate) all: &'static str,
    pub(crate) between: &'static str,
    pub(crate) postgres_containing: &'static str,
    pub(crate) sqlite_containing: &'static str,
    /// The trigrams that begin with a short text are between two bounds. As `between` if the search compares names.
    pub(crate) sqlite_trigrams_between: &'static str,
}

/// The columns of a search.
macro_rules! select_found {
    ($($rest:expr),+) => {
        concat!(
            "select c.name, c.current_created_at as version_created_at, cast(null as bigint) as expires_at,
                cast(null as bigint) as rotate_at
             from credential c where c.current_sequence is not null and ",
            $($rest),+,
            " order by c.current_sequence desc"
        )
    };
}

/// The columns of a search by expiry. The times of types other than certificate are read from their latest version.
macro_rules! select_found_expiring {
    ($($rest:expr),+) => {
        concat!(
            "select c.name, c.newest_created_at as version_created_at,
                case when c.credential_type = 'certificate' then c.newest_expires_at else (
                    select coalesce(v.expires_at, v.value_expires_at) from credential_version v
                    where v.sequence = c.newest_sequence
                ) end as expires_at,
                case when c.credential_type = 'certificate' then null else (
                    select v.rotate_at from credential_version v where v.sequence = c.newest_sequence
                ) end as rotate_at
             from credential c where c.newest_expires_at <= $1 ",
            $($rest),+,
            " order by c.newest_sequence desc"
        )
    };
}

/// The credentials of a range of names, in the order of the names, at most `$3`.
pub(crate) const LIST: &str = "select c.name, c.credential_type, c.current_created_at as version_created_at,
        c.newest_expires_at as due_at
     from credential c where c.name_folded >= $1 and c.name_folded < $2 and c.current_sequence is not null
     order by c.name_folded limit $3";

/// Up to eight trigrams of a parameter's text that few names contain, as `rare_part`: trigrams that are missing from a sample of
/// names, which is chosen by random ids. An index lookup takes time for every trigram of the text. For a common trigram, as at
/// the beginning of a path, that time grows with the store. For a text as short as a word, there are no rare parts: finding them
/// would cost as much as they save.
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

/// PostgreSQL: the sequences of the credentials whose names contain the text of a parameter. Looks up the text's rare parts
/// and compares the names that match. Looks up all trigrams of a text without rare parts, or the text itself if it is shorter
/// than a trigram. Gathers the sequences first: the plan does not depend on the text, and the planner expects more matches in
/// a larger store, so it would eventually read all credentials instead.
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

/// SQLite: as [`postgres_containing`], for texts of at least three characters. Queries the full-text index for all rare parts,
/// or for the text as a phrase.
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

/// A search of all names has the bounds of all names.
pub(crate) const FIND: ByNames = ByNames {
    all: FIND_BETWEEN,
    between: FIND_BETWEEN,
    postgres_containing: select_found!(postgres_containing!("$1")),
    sqlite_containing: select_found!(sqlite_containing!("$1")),
    sqlite_trigrams_between: select_found!(
        "c.sequence in (select doc from credential_name_trigram where term >= $1 and term < $2)"
    ),
};

const FIND_BETWEEN: &str = select_found!("c.name_folded >= $1 and c.name_folded < $2");

pub(crate) const FIND_EXPIRING: ByNames = ByNames {
    all: select_found_expiring!(""),
    between: select_found_expiring!("and c.name_folded >= $2 and c.name_folded < $3"),
    postgres_containing: select_found_expiring!("and ", postgres_containing!("$2")),
    sqlite_containing: select_found_expiring!("and ", sqlite_containing!("$2")),
    sqlite_trigrams_between: select_found_expiring!(
        "and c.sequence in (select doc from credential_name_trigram where term >= $2 and term < $3)"
    ),
};

// ---- Expiry with the chain --------------------------------------------------------------------------------------------

/// The first links of chains: the versions in use. Here and in later links, an equality is written as a range of one value, as
/// in `newest_first!`, so that each link is looked up. Otherwise a planner that expects many chains reads and joins all
/// versions.
macro_rules! select_chain_ends {
    () => {
        "select c.sequence, c.name, c.current_created_at as version_created_at, cast(0 as bigint) as depth,
            v.expires_at as first_at, cast(0 as bigint) as first_depth, c.name as first_name, v.id as first_id,
            v.signed_by, v.issuer_version_id, v.issuer_expires_at
         from credential c join credential_version v on v.sequence between c.current_sequence and c.current_sequence "
    };
}

/// Selects a column of the link that expires first: `$of_link` if the added link expires before all earlier ones, otherwise
/// `$before`.
macro_rules! first_of_chain {
    ($of_link:literal, $before:literal) => {
        concat!(
            "case when coalesce(v.expires_at, l.issuer_expires_at) < l.first_at then ",
            $of_link,
            " else ",
            $before,
            " end"
        )
    };
}

/// For each version in use, the link of its chain that expires first, if it expires until `$1`, in the order of expiry. A chain goes
/// from each version to the older version that signed it, so it has no cycle. Links have a depth of at most `$2`. Each row contains
/// the first expiry of its chain so far: sorting the links of all chains would take memory for each link.
macro_rules! select_effective_expiries {
    ($($names:expr),*) => {
        concat!(
            "with recursive chain_link as (",
            select_chain_ends!(),
            "where c.credential_type = 'certificate' and v.expires_at is not null ",
            $($names,)*
            " union all ",
            select_chain_ends!(),
            // Other types: only with the record of a certificate that expires after 1970. They have no transitional versions.
            "where c.credential_type <> 'certificate' and c.newest_expires_at > 0 and v.expires_at is not null ",
            $($names,)*
            "
                union all
                select l.sequence, l.name, l.version_created_at, l.depth + 1, ",
            first_of_chain!("coalesce(v.expires_at, l.issuer_expires_at)", "l.first_at"),
            ", ",
            first_of_chain!("l.depth + 1", "l.first_depth"),
            ", ",
            first_of_chain!("coalesce(i.name, l.signed_by)", "l.first_name"),
            ", ",
            first_of_chain!("v.id", "l.first_id"),
            ", v.signed_by, v.issuer_version_id, v.issuer_expires_at
                from chain_link l
                    left join credential_version v on v.id between l.issuer_version_id and l.issuer_version_id
                    left join credential i on i.sequence between v.credential_sequence and v.credential_sequence
                where l.issuer_expires_at is not null and l.depth < $2
            )
            select name, version_created_at, first_at, first_depth, first_name, first_id from chain_link
            where (issuer_expires_at is null or depth = $2) and first_at <= $1 order by first_at, first_depth, sequence"
        )
    };
}

pub(crate) const EFFECTIVE_EXPIRIES: ByNames = ByNames {
    all: select_effective_expiries!(),
    between: select_effective_expiries!("and c.name_folded >= $3 and c.name_folded < $4"),
    postgres_containing: select_effective_expiries!("and ", postgres_containing!("$3")),
    sqlite_containing: select_effective_expiries!("and ", sqlite_containing!("$3")),
    sqlite_trigrams_between: select_effective_expiries!(
        "and c.sequence in (select doc from credential_name_trigram where term >= $3 and term < $4)"
    ),
};

// ---- Generated by a plugin --------------------------------------------------------------------------------------------

/// The latest, active and transitional versions that the plugin with the digest `$1` generated, grouped by credential.
macro_rules! select_generated_by {
    ($($names:literal),*) => {
        concat!(
            "select c.name, coalesce(c.current_created_at, c.newest_created_at) as version_created_at,
                cast(null as bigint) as expires_at, cast(null as bigint) as rotate_at, v.sequence, v.is_generated, c.newest_sequence
             from credential_version v join credential c on c.sequence = v.credential_sequence
             where v.plugin_digest = $1
                and (v.is_transitional or v.sequence = c.current_sequence or v.sequence = c.newest_sequence) ",
            $($names,)*
            " order by coalesce(c.current_sequence, c.newest_sequence) desc, v.sequence desc"
        )
    };
}

pub(crate) const GENERATED_BY: ByNames = ByNames {
    all: select_generated_by!(),
    between: GENERATED_BY_BETWEEN,
    postgres_containing: select_generated_by!("and strpos(c.name_folded, $2) > 0"),
    sqlite_containing: select_generated_by!("and instr(c.name_folded, $2) > 0"),
    sqlite_trigrams_between: GENERATED_BY_BETWEEN,
};

const GENERATED_BY_BETWEEN: &str =
    select_generated_by!("and c.name_folded >= $2 and c.name_folded < $3");

// ---- Derived from an input --------------------------------------------------------------------------------------------

/// The credentials whose latest version was derived from the credential with the folded name `$1`, and whether that was its
/// active version. The order is an expression, so that no plan reads the versions or credentials in that order.
macro_rules! select_derived_from {
    ($($names:literal),*) => {
        concat!(
            "select c.name, coalesce(c.current_created_at, c.newest_created_at) as version_created_at,
                cast(null as bigint) as expires_at, cast(null as bigint) as rotate_at,
                coalesce(d.input_version_id = (
                    select a.id from credential n
                        join credential_version a on a.sequence between n.current_sequence and n.current_sequence
                    where n.name_folded = $1
                ), false) as is_derived_from_active
             from credential_version_input d
                join credential_version v on v.sequence = d.version_sequence
                join credential c on c.sequence = v.credential_sequence and c.newest_sequence - v.sequence = 0
             where d.input_name_folded = $1 ",
            $($names,)*
            " order by coalesce(c.newest_sequence, 0) desc"
        )
    };
}

pub(crate) const DERIVED_FROM: ByNames = ByNames {
    all: select_derived_from!(),
    between: DERIVED_FROM_BETWEEN,
    postgres_containing: select_derived_from!("and strpos(c.name_folded, $2) > 0"),
    sqlite_containing: select_derived_from!("and instr(c.name_folded, $2) > 0"),
    sqlite_trigrams_between: DERIVED_FROM_BETWEEN,
};

const DERIVED_FROM_BETWEEN: &str =
    select_derived_from!("and c.name_folded >= $2 and c.name_folded < $3");

macro_rules! count {
    ($condition:literal) => {
        concat!(
            "select chosen.credential_type, count(*) as credentials from (
                 select c.credential_type from credential c where ",
            $condition,
            " and c.current_sequence is not null limit cast($1 as bigint)
             ) chosen group by chosen.credential_type order by chosen.credential_type"
        )
    };
}

/// Reads the table in its own order: much faster than by name.
pub(crate) const COUNT_ALL: &str = count!("c.sequence > 0");

pub(crate) const COUNT_BELOW: &str = count!(
    "c.name_folded >= $2 and c.name_folded < $3
     and substr(c.name, 1, length(cast($4 as text))) = cast($4 as text)"
);

/// The condition on the sequence makes the index of transitional versions usable.
pub(crate) const TRANSITIONAL_AUTHORITIES: &str = "
    select c.name from credential_version v join credential c on c.sequence = v.credential_sequence
    where v.is_transitional and v.credential_sequence > 0 and v.is_certificate_authority
    order by v.credential_sequence";
