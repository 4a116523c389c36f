//! The SQL that counts credentials by type, and lists CAs with a transitional version.

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
