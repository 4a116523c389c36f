//! Measurements, in a release build.

use std::{path::Path, process::Command};

use crate::{
    examples,
    guests::{self, Which},
    step::{self, StepFailed},
};

/// Builds the plugins, the server and the measuring program, and runs it.
pub(crate) fn bench(arguments: &[String]) -> Result<(), StepFailed> {
    if measures_plugins(arguments) {
        guests::build(Which::All)?;
        examples::build_all()?;
    } else {
        guests::build(Which::Shipped)?;
    }
    step::run(step::cargo().args(["build", "--locked", "--workspace", "--bins", "--release"]))?;
    let root = step::workspace();
    // Started directly: cargo would build it once more, with the features that it alone needs.
    let program = root.join("target/release/keywright-bench");
    step::run(Command::new(program).args(arguments).current_dir(root))
}

/// Whether plugins in all languages are measured: what measures them is asked for, and no components are named for it.
fn measures_plugins(arguments: &[String]) -> bool {
    let is_component = |argument: &String| {
        let extension = Path::new(argument).extension();
        extension.is_some_and(|extension| extension == "wasm")
    };
    let is_name =
        |argument: &&String| argument.parse::<usize>().is_err() && !is_component(argument);
    let mut names = arguments.iter().filter(is_name).peekable();
    let are_asked_for = names.peek().is_none() || names.any(|name| name == PLUGINS);
    are_asked_for && !arguments.iter().any(is_component)
}

/// The measurement of plugins in all languages.
const PLUGINS: &str = "plugins";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_in_all_languages_are_built_where_they_are_measured() {
        for (arguments, expected) in [
            (&[][..], true),
            (&["plugins"], true),
            (&["1000"], true),
            (&["get", "plugins"], true),
            (&["get"], false),
            (&["scale", "1000"], false),
            (&["plugins", "a.wasm"], false),
        ] {
            let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(measures_plugins(&arguments), expected, "{arguments:?}");
        }
    }
}
