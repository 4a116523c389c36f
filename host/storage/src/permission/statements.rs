//! The SQL of permissions.

macro_rules! select_permission {
    ($($rest:literal),+) => {
        concat!("select p.id, p.path, p.actor, p.operations from permission p ", $($rest),+)
    };
}

pub(crate) const OF_ACTOR: &str = select_permission!("where p.actor = $1");

/// The permissions of an actor, the first parameter, on any of `count` paths, the others.
pub(crate) fn of_actor_on(count: usize) -> String {
    format!(
        select_permission!("where p.actor = $1 and p.path in ({})"),
        places(2, count)
    )
}

pub(crate) const GRANT: &str = "
    insert into permission (id, path, actor, operations) values ($1, $2, $3, $4)
    on conflict (path, actor) do update set operations = permission.operations | excluded.operations";

/// `count` places of parameters, from a number on.
fn places(first: usize, count: usize) -> String {
    let places: Vec<String> = (first..first + count)
        .map(|place| format!("${place}"))
        .collect();
    places.join(", ")
}
