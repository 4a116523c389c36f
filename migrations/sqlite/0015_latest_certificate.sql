-- Finds the latest version with a certificate, however many newer versions have none.
create index credential_version_certificate on credential_version (credential_sequence) where expires_at is not null;
