//! Random mutations with a fixed seed, one per parser.
