-- Leases: which of several servers does a piece of work that is best done by one at a time. A server that was killed leaves its
-- lease behind, and another one takes it when it has ended.
create table lease (
    name text primary key not null,
    holder blob not null check (length(holder) = 16),
    expires_at integer not null
) strict, without rowid;

-- In which order encryption keys were made the active one by servers that started: the highest is the one with which versions
-- are encrypted anew. One row for each key that was ever active.
create table encryption_key_activation (
    encryption_key_id blob primary key not null check (length(encryption_key_id) = 16),
    ordinal integer not null
) strict, without rowid;

-- The index of versions by their keys has their sequences, too: here each index ends in the key of its table.
