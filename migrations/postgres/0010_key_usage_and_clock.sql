-- How many values each encryption key may have encrypted. A server adds a number here before it encrypts as many, so the
-- count is never too low.
create table encryption_key_usage (
    encryption_key_id uuid primary key,
    encryptions bigint not null check (encryptions >= 0)
);

-- The encryptions before this table: each version once when it was added, and at most once by each key in a rotation.
insert into encryption_key_usage (encryption_key_id, encryptions)
select k.id, (select coalesce(2 * max(v.sequence), 0) from credential_version v) from encryption_key k;

-- The last look of retention at the clock: when it last looked at it, and from when on it trusts it. One row.
create table retention_clock (
    id bigint primary key check (id = 1),
    seen_at bigint not null,
    trusted_from bigint not null
);
