//! Creates plugin projects and builds them into components, so that plugin authors only need a compiler.
//!
//! [`create`] creates a project of a kind from the language's template in `templates/`. [`build`] builds a project: the language's own
//! tools produce a core module, or a component with the imports of their runtime, and this crate turns it into a component for
//! Keywright. Authors need no component-model tools. [`component_of_module`] is only that last step.
//!
//! To add a language, add a variant of [`Language`], a folder in `templates/`, and a function in `build/`. Texts that are the same in
//! all languages are in `templates/common/`.

mod build;
mod component;
mod error;
mod language;
mod programs;
mod project;

pub use build::build;
pub use component::component_of_module;
pub use error::ProjectError;
pub use language::{Kind, Language};
pub use programs::Programs;
pub use project::{ProjectName, create};
