-- The versions of other credentials from which a version was derived, one row for each credential. The input and its version need
-- not exist any more. The encrypted content of the version repeats these rows.
create table credential_version_input (
    version_sequence integer not null references credential_version (sequence) on delete cascade,
    input_name_folded text not null,
    input_version_id blob not null check (length(input_version_id) = 16),
    primary key (version_sequence, input_name_folded)
) strict, without rowid;

create index credential_version_input_name on credential_version_input (input_name_folded);
