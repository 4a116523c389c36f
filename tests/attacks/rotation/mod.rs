//! Rotation and upgrade: certificates that other types signed, and parameters that a release adds or removes.

mod issued;
mod upgrade;
