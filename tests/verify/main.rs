//! Strangers verify what the server makes: OpenSSL, OpenSSH and webpki, which share no code with what made it.

mod chain;
mod elliptic_keys;
mod extensions;
mod files;
mod keys;
mod password_hash;
mod subject;
mod validity;
