//! `keywright import`.

mod dry_run;
mod failures;
mod foreign;
mod interruption;
mod memory;
mod order;
mod resumption;
mod round_trip;
