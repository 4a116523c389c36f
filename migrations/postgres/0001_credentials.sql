-- Credentials, their versions, permissions and encryption keys.
--
-- Times are milliseconds since 1970-01-01T00:00:00Z. "Folded" names are in lower case, and compared byte by byte.
-- A `sequence` grows with every insert and is never used twice: it is the order of the versions of a credential. Times are for
-- people. It grows before its transaction is committed, but of two transactions that add a version to one credential, the one
-- that comes second begins anew.

-- One row for each encryption key that was ever active. What is encrypted names its key by `id`; a configured key is
-- recognised by being able to open the canary.
create table encryption_key (
    id uuid primary key,
    -- How the key comes about: 'password' or 'raw'.
    provider text not null,
    -- With which parameters, where the provider has any.
    salt bytea,
    iterations bigint,
    canary_nonce bytea not null,
    canary_ciphertext bytea not null,
    created_at bigint not null,
    check ((salt is null) = (iterations is null))
);

-- The last five columns repeat what the versions say, so that a search reads this table alone. They are written in the
-- transaction that adds, deletes or marks a version.
create table credential (
    sequence bigint generated always as identity primary key,
    id uuid not null unique,
    -- In the casing of the first writer.
    name text not null,
    name_folded text collate "C" not null constraint credential_name_folded_key unique,
    credential_type text not null,
    created_at bigint not null,
    -- The newest version of any kind.
    newest_sequence bigint,
    newest_created_at bigint,
    newest_expires_at bigint,
    -- The newest version that is not transitional.
    current_sequence bigint,
    current_created_at bigint
);

create index credential_expiry on credential (newest_expires_at) where newest_expires_at is not null;

create table credential_version (
    sequence bigint generated always as identity primary key,
    id uuid not null unique,
    credential_sequence bigint not null references credential (sequence) on delete cascade,
    created_at bigint not null,
    is_transitional boolean not null,
    -- Null: unknown.
    is_generated boolean,
    -- What a certificate says of itself: all four, or none.
    expires_at bigint,
    is_certificate_authority boolean,
    is_self_signed boolean,
    key_length_bits bigint check (key_length_bits >= 0),
    -- The credential whose certificate signed this one, if that is known. It need not exist any more.
    signed_by text,
    signed_by_folded text collate "C",
    -- Which plugin made the value: all four, or none.
    plugin_name text,
    plugin_version text,
    plugin_digest text,
    interface_version text,
    -- The value, its parameters and its metadata, encrypted.
    encryption_key_id uuid not null references encryption_key (id),
    nonce bytea not null,
    ciphertext bytea not null,
    check ((expires_at is null) = (is_certificate_authority is null)),
    check ((expires_at is null) = (is_self_signed is null)),
    check ((expires_at is null) = (key_length_bits is null)),
    check ((signed_by is null) = (signed_by_folded is null)),
    check ((plugin_name is null) = (plugin_version is null)),
    check ((plugin_name is null) = (plugin_digest is null)),
    check ((plugin_name is null) = (interface_version is null))
);

create index credential_version_credential on credential_version (credential_sequence, sequence);

-- At most one transitional version for each credential.
create unique index credential_version_transitional on credential_version (credential_sequence) where is_transitional;

create index credential_version_signer on credential_version (signed_by_folded) where signed_by_folded is not null;

create index credential_version_plugin on credential_version (plugin_digest) where plugin_digest is not null;

create index credential_version_key on credential_version (encryption_key_id);

create table permission (
    sequence bigint generated always as identity primary key,
    id uuid not null unique,
    -- One full name, or a path that ends in an asterisk. Case counts.
    path text not null,
    actor text not null,
    -- The sum of: 1 read, 2 write, 4 delete, 8 read_acl, 16 write_acl.
    operations bigint not null check (operations between 1 and 31),
    unique (path, actor)
);

create index permission_actor on permission (actor, path);

-- All parts of one, two and three characters of each folded name, for searching by a part of a name. They are not those of
-- pg_trgm: that leaves punctuation out, finds nothing by less than three characters, and must be installed by somebody.
create table credential_name (
    credential_sequence bigint primary key references credential (sequence) on delete cascade,
    parts text[] collate "C" not null
);

create index credential_name_parts on credential_name using gin (parts);

create function credential_name_insert() returns trigger language plpgsql as $$
begin
    insert into credential_name (credential_sequence, parts)
    select new.sequence, array_agg(distinct substr(new.name_folded, first_character, characters))
    from generate_series(1, length(new.name_folded)) as first_character, generate_series(1, 3) as characters
    where first_character + characters <= length(new.name_folded) + 1;
    return null;
end;
$$;

create trigger credential_name_insert after insert on credential
    for each row execute function credential_name_insert();
