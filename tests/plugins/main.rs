//! Plugins from the point of view of operators and callers: isolation, rejection, and the containment of misbehaving plugins.

mod author;
mod calls;
mod canaries;
mod components;
mod derived;
mod examples;
mod hostile;
mod input_actors;
mod inputs;
mod refusals;
mod registry;
mod released;
mod reload;
mod signing;
mod types;
