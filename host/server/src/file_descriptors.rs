//! How many files and sockets the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process's own limit of open files to what so many connections and readers of the database need, as far as it
/// may. Where that is not far enough, the log says so: connections beyond it wait, as they do beyond the ceiling.
pub(crate) fn provide_for(connections_max: usize, readers_max: u32) {
    let wanted = u64::try_from(connections_max)
        .unwrap_or(u64::MAX)
        .saturating_add(u64::from(readers_max) * DESCRIPTORS_OF_ONE_READER)
        .saturating_add(OTHER_DESCRIPTORS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(raised) = raised(current, maximum, wanted) else {
        return;
    };
    let limit = Rlimit {
        current: Some(raised),
        maximum,
    };
    if let Err(cause) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(error = %cause, "the limit of open files could not be raised to {raised}");
    } else if raised < wanted {
        tracing::warn!(
            "server.connections_max is {connections_max} and storage.readers_max {readers_max}, for which {wanted} open files \
             are needed; the system allows this process {raised}. Raise its hard limit (`LimitNOFILE`, `ulimit -Hn`), or \
             lower a setting"
        );
    }
}

/// What the soft limit is to be; nothing when it is high enough.
fn raised(current: Option<u64>, maximum: Option<u64>, wanted: u64) -> Option<u64> {
    if current? >= wanted {
        return None;
    }
    Some(maximum.map_or(wanted, |maximum| wanted.min(maximum)))
}

/// What a reader of the database has open: its file, the write-ahead log, and that one's index.
const DESCRIPTORS_OF_ONE_READER: u64 = 3;

/// The database's writer, the listeners, the log, connections to the identity provider, and what is just being closed.
const OTHER_DESCRIPTORS: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_wanted_and_allowed() {
        for (current, maximum, wanted, to) in [
            (Some(1_024), Some(20_000), 4_352, Some(4_352)),
            (Some(1_024), None, 4_352, Some(4_352)),
            (Some(1_024), Some(4_096), 4_352, Some(4_096)),
            (Some(4_096), Some(4_096), 4_352, Some(4_096)),
            (Some(4_352), Some(4_352), 4_352, None),
            (None, None, 4_352, None),
        ] {
            assert_eq!(
                raised(current, maximum, wanted),
                to,
                "{current:?} {maximum:?}"
            );
        }
    }
}
