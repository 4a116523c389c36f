//! Rows about certificates.

mod alternative_names;
mod encoding;
mod existing_leaf;
mod openssl;
mod short_keys;
mod signatures;
mod sizes;
