//! Readers that make the server hold large responses in memory.
