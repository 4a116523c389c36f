//! What the original server and its real clients do, one test or more for each ruling.

mod spring;
