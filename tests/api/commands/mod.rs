//! Commands of the program that work on a server's database.

mod backup;
mod backup_refused;
mod check;
mod check_damage;
