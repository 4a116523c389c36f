//! The SQL of searches by path, by a part of the name, by expiry and by the plugin that generated a version.

/// The columns of a search.
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

/// The columns of a search by expiry.
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

pub(crate) const FIND_BELOW: &str = select_found!("c.name_folded >= $1 and c.name_folded < $2");

pub(crate) const FIND_EXPIRING: &str = select_found_expiring!("");

pub(crate) const FIND_EXPIRING_BELOW: &str =
    select_found_expiring!("and c.name_folded >= $2 and c.name_folded < $3");

/// Up to eight trigrams of a parameter's text that few names contain, as `rare_part`: those missing from a sample of names,
/// chosen by their random ids. An index lookup takes time for every trigram of the text, and for a common one, as at the
/// beginning of a path, that time grows with the store. A text as short as a word has no rare parts: finding them would cost as
/// much as they save.
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

/// PostgreSQL: the sequences of the credentials whose names contain the text of a parameter. Looks up the text's rare parts, or
/// all its trigrams if it has none, or the text itself if it is shorter, and compares the names that match. Gathers the
/// sequences first: the planner does not know the text and expects more matches in a larger store, so it would eventually read
/// all credentials instead.
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

/// The first links of chains: the versions in use. Here and in later links, an equality is a range of one value, as in
/// `newest_first!`, so that each link is looked up. Otherwise a planner that expects many chains reads and joins all versions.
macro_rules! select_chain_ends {
    () => {
        "select c.sequence, c.name, c.current_created_at as version_created_at, cast(0 as bigint) as depth,
            c.name as link_name, v.id as link_id, v.expires_at,
            v.signed_by, v.issuer_version_id, v.issuer_expires_at
         from credential c join credential_version v on v.sequence between c.current_sequence and c.current_sequence "
    };
}

/// The links of the chains of versions in use that expire until `$1`, in the order of expiry. A chain goes from each version to
/// the older one that signed it, so it has no cycle. The farthest link has the depth `$2`.
macro_rules! select_effective_expiries {
    ($($names:expr),*) => {
        concat!(
            "with recursive chain_link as (",
            select_chain_ends!(),
            "where c.credential_type = 'certificate' and v.expires_at is not null ",
            $($names,)*
            " union all ",
            select_chain_ends!(),
            // Other types: only if an issuer signed the version, with an expiry after 1970. They have no transitional versions.
            "where c.credential_type <> 'certificate' and c.newest_expires_at > 0 and v.expires_at is not null ",
            $($names,)*
            "
                union all
                select l.sequence, l.name, l.version_created_at, l.depth + 1,
                    coalesce(i.name, l.signed_by), v.id, coalesce(v.expires_at, l.issuer_expires_at),
                    v.signed_by, v.issuer_version_id, v.issuer_expires_at
                from chain_link l
                    left join credential_version v on v.id between l.issuer_version_id and l.issuer_version_id
                    left join credential i on i.sequence between v.credential_sequence and v.credential_sequence
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

// ---- Generated by a plugin --------------------------------------------------------------------------------------------

/// The newest, current and transitional versions that the plugin with the digest `$1` generated, grouped by credential.
macro_rules! select_generated_by {
    ($($names:literal),*) => {
        concat!(
            "select c.name, coalesce(c.current_created_at, c.newest_created_at) as version_created_at,
                cast(null as bigint) as expires_at, v.sequence, c.newest_sequence
             from credential_version v join credential c on c.sequence = v.credential_sequence
             where v.plugin_digest = $1
                and (v.is_transitional or v.sequence = c.current_sequence or v.sequence = c.newest_sequence) ",
            $($names,)*
            " order by coalesce(c.current_sequence, c.newest_sequence) desc, v.sequence desc"
        )
    };
}

pub(crate) const GENERATED_BY: &str = select_generated_by!();

pub(crate) const GENERATED_BY_BELOW: &str =
    select_generated_by!("and c.name_folded >= $2 and c.name_folded < $3");

pub(crate) const POSTGRES_GENERATED_BY_CONTAINING: &str =
    select_generated_by!("and strpos(c.name_folded, $2) > 0");

pub(crate) const SQLITE_GENERATED_BY_CONTAINING: &str =
    select_generated_by!("and instr(c.name_folded, $2) > 0");
