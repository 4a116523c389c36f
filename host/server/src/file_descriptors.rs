//! The limit of open files and sockets of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files as far as needed and allowed for this many connections. If that is not enough,
/// this is logged; connections beyond the limit wait, as they do beyond the configured maximum.
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
        tracing::warn!(error = %cause, "could not raise the limit of open files to {raised}");
    } else if raised < wanted {
        tracing::warn!(
            "too few open files are allowed for server.connections_max ({connections_max}) and {database_connections_max} database \
             connections (storage.readers_max, storage.writers_max): {wanted} are needed, and {raised} are allowed; raise the hard \
             limit (`LimitNOFILE`, `ulimit -Hn`), or lower a setting"
        );
    }
}

/// Returns the maximum number of open files.
fn wanted(connections_max: usize, database_connections_max: usize) -> u64 {
    let files = database_connections_max
        .saturating_mul(DESCRIPTORS_OF_ONE_DATABASE_CONNECTION)
        .saturating_add(connections_max);
    let files = u64::try_from(files).unwrap_or(u64::MAX);
    files.saturating_add(OTHER_DESCRIPTORS)
}

/// Returns the new soft limit, or `None` if it is high enough.
fn raised(current: Option<u64>, maximum: Option<u64>, wanted: u64) -> Option<u64> {
    if current? >= wanted {
        return None;
    }
    Some(maximum.map_or(wanted, |maximum| wanted.min(maximum)))
}

/// Open files per database connection: with SQLite, the database, the write-ahead log and its index.
const DESCRIPTORS_OF_ONE_DATABASE_CONNECTION: usize = 3;

/// Listeners, logs, the audit trail, connections to the identity provider, and connections being closed.
const OTHER_DESCRIPTORS: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_connections_need_one_file_and_database_ones_three() {
        assert_eq!(wanted(1, 0), 257);
        assert_eq!(wanted(4_096, 20), 4_096 + 60 + 256);
        assert_eq!(wanted(usize::MAX, usize::MAX), u64::MAX);
    }

    #[test]
    fn the_limit_is_raised_as_far_as_needed_and_allowed() {
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
