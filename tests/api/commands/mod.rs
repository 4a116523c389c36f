//! Commands of the program that work on a server's database.

mod backup;
mod check;
mod check_damage;
