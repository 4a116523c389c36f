-- The key itself, encrypted by a key management service, for the provider 'kms'. Others have none.
alter table encryption_key add column wrapped_key bytea check (wrapped_key is null or length(wrapped_key) between 1 and 16384);
