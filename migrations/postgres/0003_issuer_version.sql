-- The authority's version that signed a certificate: together they are the chain that is in actual use. A version that was
-- set with a plain `ca`, or whose authority is gone since, has the expiry of its issuer alone.
alter table credential_version add column issuer_version_id uuid;
alter table credential_version add column issuer_expires_at bigint
    check (issuer_expires_at is not null or issuer_version_id is null);
