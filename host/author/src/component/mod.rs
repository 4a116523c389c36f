//! Components: made of core modules, and closed where a language's runtime left them open.

mod adapter;
mod closed;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

pub(crate) use closed::close;

use crate::wit::World;

/// Makes a component of a core module that holds its own WIT, as wit-bindgen leaves it.
///
/// What the module wants of WASI's first preview, for the sake of its language's runtime, is answered inside the component,
/// with nothing but the host's randomness behind it: there are no arguments, no environment, no files, and no time; what is
/// written is thrown away.
///
/// # Errors
/// When the module is none, or imports something else.
pub fn component_of_module(module: &[u8]) -> Result<Vec<u8>, NotEncodable> {
    let encode = || {
        let adapter = adapter::module()?;
        ComponentEncoder::default()
            .validate(true)
            .module(module)?
            .adapter(adapter::NAME, &adapter)?
            .encode()
    };
    encode().map_err(NotEncodable::from)
}

/// The same of a core module that holds no WIT, and was built for this world.
pub(crate) fn component_of_bare_module(
    mut module: Vec<u8>,
    world: &World,
) -> Result<Vec<u8>, NotEncodable> {
    embed_component_metadata(&mut module, &world.resolve, world.id, StringEncoding::UTF8)?;
    component_of_module(&module)
}

/// No component can be made of this.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotEncodable(String);

impl From<anyhow::Error> for NotEncodable {
    fn from(cause: anyhow::Error) -> Self {
        Self(format!("{cause:#}"))
    }
}
