-- Lists all certificates in the order of their newest versions without a look at what is no certificate.
create index credential_certificate on credential (credential_type, newest_sequence) where credential_type = 'certificate';
