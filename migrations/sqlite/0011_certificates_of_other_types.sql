-- Counts certificates by type and finds those of types other than certificate. Has the beginning of the index that it replaces.
create index credential_expiry_type on credential (newest_expires_at, credential_type) where newest_expires_at is not null;
drop index credential_expiry;

-- The versions whose signer is known, but not their certificate: of other types, stored before serial numbers were.
create index credential_version_unrecorded on credential_version (credential_sequence)
    where signed_by_folded is not null and expires_at is null;
