-- Leases: which of several servers does a piece of work that is best done by one at a time. A server that was killed leaves its
-- lease behind, and another one takes it when it has ended.
create table lease (
    name text primary key,
    holder uuid not null,
    expires_at bigint not null
);

-- In which order encryption keys were made the active one by servers that started: the highest is the one with which versions
-- are encrypted anew. One row for each key that was ever active.
create table encryption_key_activation (
    encryption_key_id uuid primary key,
    ordinal bigint not null
);

-- The versions under one key, in the order in which they are encrypted anew.
create index credential_version_key_sequence on credential_version (encryption_key_id, sequence);
drop index credential_version_key;
