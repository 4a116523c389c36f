-- An index of the newest version has every new version change all indexes of its credential's row, and so come in the way of
-- serializable transactions that look up neighbouring names. Without it, only the row is changed. The few certificates are
-- sorted when they are listed.
create index credential_certificate_sequence on credential (credential_type, sequence) where credential_type = 'certificate';
drop index credential_certificate;
