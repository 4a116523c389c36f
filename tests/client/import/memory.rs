//! Files larger than the memory of an import or an export.

use std::{fmt::Write, fs};

use keywright_harness::{Server, Shell};

use crate::given;

/// `KEYWRIGHT_TEST_TRANSFER_ENTRIES` sets the number of entries, for a test with many small ones.
#[tokio::test]
async fn memory_does_not_grow_with_imports_and_exports() {
    let wanted = std::env::var("KEYWRIGHT_TEST_TRANSFER_ENTRIES").ok();
    let (entries, value_bytes) = wanted.map_or((MANY, VALUE_BYTES), |wanted| {
        (wanted.parse().unwrap(), SMALLER_VALUE_BYTES)
    });
    let growth_max = GROWTH_KIBIBYTES_MAX + entries as u64 * NAME_BYTES_MAX / 1_024;
    let server = Server::start().await;
    let shell = Shell::of(&server);
    given::file(&shell, "few.yml", &listing(FEW, value_bytes));
    given::file(&shell, "many.yml", &listing(entries, value_bytes));
    let few = memory_of_several(&shell, &["import", "few.yml"]);
    let many = shell.memory_of(&["import", "many.yml"]);
    println!("import: {few} KiB for {FEW}, {many} KiB for {entries}");
    assert!(many < few + growth_max);
    for format in ["json", "yaml"] {
        let arguments = ["export", "--force", "--file", "export", "--format", format];
        let few = memory_of_several(&shell, &[&arguments[..], &["--path", "/few"]].concat());
        let many = shell.memory_of(&arguments);
        println!("export: {few} KiB for nothing, {many} KiB for {entries}");
        assert!(many < few + growth_max);
        let exported = fs::metadata(shell.file("export")).unwrap().len();
        assert!(exported > (entries * value_bytes) as u64);
    }
}

/// The maximum of several runs. On a busy machine, a short run may end before the last measurement.
fn memory_of_several(shell: &Shell, arguments: &[&str]) -> u64 {
    (0..FEW_RUNS)
        .map(|_| shell.memory_of(arguments))
        .max()
        .unwrap()
}

fn listing(count: usize, value_bytes: usize) -> String {
    let value = "v".repeat(value_bytes);
    let mut listing = "credentials:\n".to_owned();
    for index in 0..count {
        writeln!(
            listing,
            "- {{name: /large/{index}, type: value, value: {value}}}"
        )
        .unwrap();
    }
    listing
}

/// Less than half the size of all values.
const GROWTH_KIBIBYTES_MAX: u64 = 16 * 1_024;

/// The additional memory per name: in the response with all names, in their list, and as a hash.
const NAME_BYTES_MAX: u64 = 768;

const VALUE_BYTES: usize = 60_000;
const SMALLER_VALUE_BYTES: usize = 4_000;
const FEW: usize = 20;
const FEW_RUNS: usize = 5;
const MANY: usize = 600;
