//! Rotation and upgrades: certificates of other types, and parameters that a release adds or removes.

mod issued;
mod upgrade;
