-- Credentials, their versions, permissions and encryption keys.
--
-- Times are milliseconds since 1970-01-01T00:00:00Z. Ids are UUIDs, 16 bytes. "Folded" names are in lower case.
-- A `sequence` grows with every insert and is never used twice: it is the order of things. Times are for people.

-- One row for each encryption key that was ever active. What is encrypted names its key by `id`; a configured key is
-- recognised by being able to open the canary.
create table encryption_key (
    id blob primary key not null check (length(id) = 16),
    -- How the key comes about: 'password' or 'raw'.
    provider text not null,
    -- With which parameters, where the provider has any.
    salt blob,
    iterations integer,
    canary_nonce blob not null,
    canary_ciphertext blob not null,
    created_at integer not null,
    check ((salt is null) = (iterations is null))
) strict, without rowid;

-- The last five columns repeat what the versions say, so that a search reads this table alone. They are written in the
-- transaction that adds, deletes or marks a version.
create table credential (
    sequence integer primary key autoincrement,
    id blob not null unique check (length(id) = 16),
    -- In the casing of the first writer.
    name text not null,
    name_folded text not null unique,
    credential_type text not null,
    created_at integer not null,
    -- The newest version of any kind.
    newest_sequence integer,
    newest_created_at integer,
    newest_expires_at integer,
    -- The newest version that is not transitional.
    current_sequence integer,
    current_created_at integer
) strict;

create index credential_expiry on credential (newest_expires_at) where newest_expires_at is not null;

create table credential_version (
    sequence integer primary key autoincrement,
    id blob not null unique check (length(id) = 16),
    credential_sequence integer not null references credential (sequence) on delete cascade,
    created_at integer not null,
    is_transitional integer not null check (is_transitional in (0, 1)),
    -- Null: unknown.
    is_generated integer check (is_generated in (0, 1)),
    -- What a certificate says of itself: all four, or none.
    expires_at integer,
    is_certificate_authority integer check (is_certificate_authority in (0, 1)),
    is_self_signed integer check (is_self_signed in (0, 1)),
    key_length_bits integer check (key_length_bits >= 0),
    -- The credential whose certificate signed this one, if that is known. It need not exist any more.
    signed_by text,
    signed_by_folded text,
    -- Which plugin made the value: all four, or none.
    plugin_name text,
    plugin_version text,
    plugin_digest text,
    interface_version text,
    -- The value, its parameters and its metadata, encrypted. Last, because they may fill pages of their own.
    encryption_key_id blob not null references encryption_key (id),
    nonce blob not null,
    ciphertext blob not null,
    check ((expires_at is null) = (is_certificate_authority is null)),
    check ((expires_at is null) = (is_self_signed is null)),
    check ((expires_at is null) = (key_length_bits is null)),
    check ((signed_by is null) = (signed_by_folded is null)),
    check ((plugin_name is null) = (plugin_version is null)),
    check ((plugin_name is null) = (plugin_digest is null)),
    check ((plugin_name is null) = (interface_version is null))
) strict;

create index credential_version_credential on credential_version (credential_sequence, sequence);

-- At most one transitional version for each credential.
create unique index credential_version_transitional on credential_version (credential_sequence) where is_transitional;

create index credential_version_signer on credential_version (signed_by_folded) where signed_by_folded is not null;

create index credential_version_plugin on credential_version (plugin_digest) where plugin_digest is not null;

create index credential_version_key on credential_version (encryption_key_id);

create table permission (
    sequence integer primary key autoincrement,
    id blob not null unique check (length(id) = 16),
    -- One full name, or a path that ends in an asterisk. Case counts.
    path text not null,
    actor text not null,
    -- The sum of: 1 read, 2 write, 4 delete, 8 read_acl, 16 write_acl.
    operations integer not null check (operations between 1 and 31),
    unique (path, actor)
) strict;

create index permission_actor on permission (actor, path);

-- The trigrams of all folded names, for searching by a part of a name. Two control characters stand behind each name, so
-- that every text of one or two characters that occurs in a name is the beginning of one of its trigrams, too.
create virtual table credential_name using fts5 (
    name_padded,
    content = '',
    contentless_delete = 1,
    tokenize = 'trigram case_sensitive 1'
);

create virtual table credential_name_trigram using fts5vocab (credential_name, instance);

create trigger credential_name_insert after insert on credential begin
    insert into credential_name (rowid, name_padded) values (new.sequence, new.name_folded || char(1, 1));
end;

create trigger credential_name_delete after delete on credential begin
    delete from credential_name where rowid = old.sequence;
end;
