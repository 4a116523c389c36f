//! Each row of section 20 of the behaviour reference, in tests that are named after it.

mod certificates;
