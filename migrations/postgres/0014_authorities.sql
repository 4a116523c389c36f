-- Finds the CAs without reading all certificates.
create index credential_version_authority on credential_version (credential_sequence) where is_certificate_authority;
