//! Several servers on one PostgreSQL: what their histories show breaks no rule that holds for one server.
