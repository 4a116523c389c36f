//! How many files and sockets the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process's own limit of open files to what so many connections of clients and to the database need, as far as it
/// may. Where that is not far enough, the log says so: connections beyond it wait, as they do beyond the ceiling.
pub(crate) fn provide_for(connections_max: usize, database_connections_max: usize) {
    let wanted = wanted(connections_max, database_connections_max);
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
            "server.connections_max is {connections_max}, and there may be {database_connections_max} connections to the \
             database (storage.readers_max, storage.writers_max), for which {wanted} open files are needed; the system allows this process {raised}. Raise its hard limit (`LimitNOFILE`, `ulimit -Hn`), or \
             lower a setting"
        );
    }
}

/// How many open files are needed at most.
fn wanted(connections_max: usize, database_connections_max: usize) -> u64 {
    let files = database_connections_max
        .saturating_mul(DESCRIPTORS_OF_ONE_DATABASE_CONNECTION)
        .saturating_add(connections_max);
    let files = u64::try_from(files).unwrap_or(u64::MAX);
    files.saturating_add(OTHER_DESCRIPTORS)
}

/// What the soft limit is to be; nothing when it is high enough.
fn raised(current: Option<u64>, maximum: Option<u64>, wanted: u64) -> Option<u64> {
    if current? >= wanted {
        return None;
    }
    Some(maximum.map_or(wanted, |maximum| wanted.min(maximum)))
}

/// What a connection to the database has open at most: with SQLite, its file, the write-ahead log, and that one's index.
const DESCRIPTORS_OF_ONE_DATABASE_CONNECTION: usize = 3;

/// The listeners, the log, the audit trail, connections to the identity provider, and what is just being closed.
const OTHER_DESCRIPTORS: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_of_a_client_needs_a_file_and_each_to_the_database_three() {
        assert_eq!(wanted(1, 0), 257);
        assert_eq!(wanted(4_096, 20), 4_096 + 60 + 256);
        assert_eq!(wanted(usize::MAX, usize::MAX), u64::MAX);
    }

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
