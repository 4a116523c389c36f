-- When a value without a certificate expires, and when it should be rotated, according to its plugin. The first of both is the
-- credential's newest_expires_at.
alter table credential_version add column value_expires_at integer check (value_expires_at is null or expires_at is null);
alter table credential_version add column rotate_at integer
    check (rotate_at is null or (expires_at is null and (value_expires_at is null or rotate_at <= value_expires_at)));
