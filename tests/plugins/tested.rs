//! The list of tested components that a release embeds.

use keywright_harness::{component, digest, run_program, workspace};

#[test]
fn list_has_all_random_generators() {
    let random = component("password");
    // A resolver generates no values, and the values of the other plugin are derived.
    let (resolver, derived) = (component("interpolation"), component("hostile"));
    let files = [&random, &resolver, &derived].map(|file| file.to_str().unwrap());
    let arguments = [&["plugin", "tested"][..], &files].concat();
    let printed = run_program(&workspace(), &arguments, &[]).expect(0).output;
    let digest = digest(&std::fs::read(&random).unwrap());
    let listed: Vec<_> = printed.split_whitespace().skip(1).collect();
    assert_eq!(listed, [digest.trim_start_matches("sha256:")]);
}
