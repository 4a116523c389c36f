//! The SQL of permissions.

macro_rules! select_permission {
    ($($rest:literal),+) => {
        concat!("select p.id, p.path, p.actor, p.operations from permission p ", $($rest),+)
    };
}

macro_rules! returning_permission {
    ($($statement:literal),+) => {
        concat!($($statement),+, " returning id, path, actor, operations")
    };
}

pub(crate) const OF_ACTOR: &str = select_permission!("where p.actor = $1");

/// At most `$2` of them. SQLite would prepare `limit $2` again for each value, so the limit is an expression.
pub(crate) const SOME_OF_ACTOR: &str =
    select_permission!("where p.actor = $1 limit cast($2 as bigint)");

/// The permissions of an actor, the first parameter, on any of `count` paths, the others.
pub(crate) fn of_actor_on(count: usize) -> String {
    format!(
        select_permission!("where p.actor = $1 and p.path in ({})"),
        places(2, count)
    )
}

/// SQLite: as [`of_actor_on`]. With `in`, SQLite would copy the paths into a temporary table first.
pub(crate) fn sqlite_of_actor_on(count: usize) -> String {
    let on_each: Vec<String> = (2..count + 2)
        .map(|place| {
            format!(
                select_permission!("where p.actor = $1 and p.path = ${}"),
                place
            )
        })
        .collect();
    on_each.join(" union all ")
}

/// PostgreSQL: as [`of_actor_on`], with the stored name of the credential whose folded name is the second parameter in each
/// row. The paths are the parameters after it.
pub(crate) fn postgres_of_actor_on_name(count: usize) -> String {
    format!(
        "select p.id, p.path, p.actor, p.operations,
             (select c.name from credential c where c.name_folded = $2) as stored_name
         from permission p where p.actor = $1 and p.path in ({})",
        places(3, count)
    )
}

pub(crate) const BY_ID: &str = select_permission!("where p.id = $1");

pub(crate) const ON_PATH: &str = select_permission!("where p.path = $1 order by p.sequence");

pub(crate) const GRANT: &str = returning_permission!(
    "insert into permission (id, path, actor, operations) values ($1, $2, $3, $4)
    on conflict (path, actor) do update set operations = permission.operations | excluded.operations"
);

pub(crate) const ADD: &str = returning_permission!(
    "insert into permission (id, path, actor, operations) values ($1, $2, $3, $4)
    on conflict (path, actor) do nothing"
);

pub(crate) const REPLACE_OPERATIONS: &str =
    returning_permission!("update permission set operations = $2 where id = $1");

pub(crate) const DELETE: &str = returning_permission!("delete from permission where id = $1");

pub(crate) const DELETE_OF_ACTOR_ON: &str =
    returning_permission!("delete from permission where actor = $1 and path = $2");

/// Returns `count` placeholders, from the number `first`.
pub(crate) fn places(first: usize, count: usize) -> String {
    let places: Vec<String> = (first..first + count)
        .map(|place| format!("${place}"))
        .collect();
    places.join(", ")
}
