//! Servers that are killed at random moments under a mixed load of writes: every acknowledged write is there afterwards, and nothing
//! is there by half.
