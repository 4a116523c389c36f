//! `keywright config-reference`.

use std::{fs, path::Path};

use keywright_harness::{run_program, workspace};

#[test]
fn the_printed_reference_matches_the_golden_file() {
    let printed = run_program(Path::new("/"), &["config-reference"], &[]).expect(0);
    let kept = fs::read_to_string(workspace().join("host/docs/configuration.md")).unwrap();
    assert!(printed.output == kept, "{}", printed.output);
}
