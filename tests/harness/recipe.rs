//! Settings for identity providers from the operator's guide.

use std::fs;

use crate::workspace;

/// The settings of the section `authentication` below a heading of the guide, without the provider's address.
pub fn identity_provider_recipe(heading: &str) -> String {
    let guide = workspace().join("host/docs/operating/identity-providers.md");
    let guide = fs::read_to_string(guide).unwrap();
    let heading = format!("\n## {heading}\n");
    let (_, below) = guide.split_once(&heading).expect("the guide's heading");
    let (_, block) = below.split_once("```toml\n[authentication]\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let settings = block.lines().filter(|line| !line.starts_with("url "));
    settings.collect::<Vec<_>>().join("\n")
}
