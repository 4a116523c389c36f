-- How many values each encryption key may have encrypted. A server adds a number here before it encrypts as many, so the
-- count is never too low.
create table encryption_key_usage (
    encryption_key_id blob primary key not null check (length(encryption_key_id) = 16),
    encryptions integer not null check (encryptions >= 0)
) strict, without rowid;

-- The encryptions before this table: each version once when it was added, and at most once by each key in a rotation.
insert into encryption_key_usage (encryption_key_id, encryptions)
select k.id, (select coalesce(2 * max(v.sequence), 0) from credential_version v) from encryption_key k;

-- The last look of retention at the clock: when it last looked at it, and from when on it trusts it. One row.
create table retention_clock (
    id integer primary key not null check (id = 1),
    seen_at integer not null,
    trusted_from integer not null
) strict;
