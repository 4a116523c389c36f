//! Builds anew when a migration is added: the files are compiled in.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
