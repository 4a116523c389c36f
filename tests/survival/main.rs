//! What survives: servers that are killed at any moment, many servers on one database, and a database that goes away.

mod database_away;
mod kills;
mod many_servers;
