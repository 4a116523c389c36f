//! Plugins from the point of view of operators and callers: their isolation, their rejection, and the containment of bad ones.

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
