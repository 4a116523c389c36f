//! Hostile guests: schemas, resolvers, traps, and callers that occupy the plugin lanes.
