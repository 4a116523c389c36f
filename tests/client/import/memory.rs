//! Files that are larger than the memory that an import or an export may have.

use std::{fmt::Write, fs, time::Duration};

use keywright_harness::{Server, Shell};

use crate::given;

#[tokio::test]
async fn what_is_imported_and_exported_is_not_in_memory() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    given::file(&shell, "few.yml", &listing(FEW));
    given::file(&shell, "many.yml", &listing(MANY));
    let few = memory(&shell, &["import", "few.yml"]).await;
    let many = memory(&shell, &["import", "many.yml"]).await;
    assert!(
        many < few + GROWTH_KIBIBYTES_MAX,
        "import: {few} KiB for {FEW}, {many} KiB for {MANY}"
    );
    for format in ["json", "yaml"] {
        let arguments = ["export", "--force", "--file", "export", "--format", format];
        let few = memory(&shell, &[&arguments[..], &["--path", "/few"]].concat()).await;
        let many = memory(&shell, &arguments).await;
        assert!(
            many < few + GROWTH_KIBIBYTES_MAX,
            "export: {few} KiB for nothing, {many} KiB for {MANY}"
        );
        let exported = fs::metadata(shell.file("export")).unwrap().len();
        assert!(exported > u64::try_from(MANY * VALUE_BYTES).unwrap());
    }
}

fn listing(count: usize) -> String {
    let value = "v".repeat(VALUE_BYTES);
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

/// Runs the program to its end, which must be a good one, and returns the most memory that it had at once, in KiB.
async fn memory(shell: &Shell, arguments: &[&str]) -> u64 {
    let mut child = shell.start(arguments);
    let told = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(&told).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(kibibytes.unwrap_or_default());
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return peak;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// All values together are more than twice as large.
const GROWTH_KIBIBYTES_MAX: u64 = 16 * 1_024;
const VALUE_BYTES: usize = 60_000;
const FEW: usize = 20;
const MANY: usize = 600;
