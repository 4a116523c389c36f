//! PostgreSQL is stopped and started under load: nothing that was acknowledged is lost, and the server recovers by itself.
