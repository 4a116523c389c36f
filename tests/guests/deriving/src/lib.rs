//! A generator that derives values from inputs. Its values contain its inputs, and its parameter `act` selects its misbehavior.

#[cfg(target_arch = "wasm32")]
mod component;
