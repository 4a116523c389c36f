//! Plugins as operators and callers meet them: what they may reach, how they are refused, and what the bad ones can't do.

mod author;
mod beyond;
mod ca_key;
mod canaries;
mod constant_random;
mod examples;
mod hexadecimal;
mod hostile_generator;
mod hostile_issuer;
mod hostile_resolver;
mod imports;
mod measurements;
mod queue;
mod refusals;
mod registry;
mod released;
mod reload;
mod rest;
mod tested;
mod wireguard;
