//! Deep, huge, duplicated and magic-keyed JSON at every boundary.
