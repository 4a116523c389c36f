-- Tells whether a version has signed another one, so that retention keeps it.
create index credential_version_issuer on credential_version (issuer_version_id) where issuer_version_id is not null;
