//! Survival tests: killed servers, several servers on one database, and unavailable databases.

mod database_away;
mod kills;
mod many_servers;
