-- The serial number of the certificate that the columns beside it describe, without leading zeros. Versions of credentials of other
-- types than certificate have these columns, too, where an issuer signed a certificate for them. Null in versions that older
-- servers add.
alter table credential_version add column serial_number blob
    check (serial_number is null or (length(serial_number) > 0 and expires_at is not null));
