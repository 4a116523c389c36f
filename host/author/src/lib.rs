//! What an author of plugins needs besides a compiler: projects to begin with, and components made of what they hold.
//!
//! [`begin`] writes a project, from the templates in `templates/`, one folder a language. [`build`] makes a component of
//! one: the language's own tools make a core module, or a component with the imports of their runtime, and everything else
//! is done here, so that an author needs no tool of the component model. [`component_of_module`] is that last step alone.
//!
//! To add a language: a variant of [`Language`], a folder in `templates/`, a file in `build/`.

mod build;
mod component;
mod language;
mod outside;
mod project;
mod wit;

pub use build::{BuildFailed, build};
pub use component::{NotEncodable, component_of_module};
pub use language::{Language, LanguageNotKnown};
pub use outside::Programs;
pub use project::{BeginRefused, NameMalformed, ProjectName, begin};
