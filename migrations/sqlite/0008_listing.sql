-- All that a search by path tells of a credential, in the order of the names: what is below a path lies together, where the rows
-- of the table lie as they came.
create index credential_listing on credential (name_folded, current_sequence, current_created_at, name);
