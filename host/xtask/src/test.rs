//! Every test, with everything built that they need.

use std::{panic::resume_unwind, process::Command, thread, time::Instant};

use crate::{
    clients, examples,
    guests::{self, EXAMPLE_MANIFEST, Which},
    programs,
    step::{self, StepFailed},
};

/// Builds what the tests need and runs them.
pub(crate) fn test(arguments: &[String]) -> Result<(), StepFailed> {
    let begun = Instant::now();
    let tell = |part: &str| eprintln!("xtask: {part} ({} s)", begun.elapsed().as_secs());
    tell("plugins and programs that are tested, and programs that tests use");
    build()?;
    tell("tests");
    step::run(
        cargo_test()
            .args(["--workspace", "--no-fail-fast"])
            .args(arguments),
    )?;
    tell("tests of the API, with another database behind the server");
    step::run(
        cargo_test()
            .args(["--workspace", "--no-fail-fast", "--test", "api"])
            .args(arguments)
            .envs(ON_POSTGRES),
    )?;
    tell("tests of the client, with another database behind the server");
    // Those in which much is read and written; all of them, where some were named.
    let representative = ["--"]
        .iter()
        .chain(&CLIENT_ON_POSTGRES)
        .map(|&word| word.to_owned());
    let arguments = if arguments.is_empty() {
        representative.collect()
    } else {
        arguments.to_vec()
    };
    step::run(
        cargo_test()
            .args(["--workspace", "--test", "client"])
            .args(arguments)
            .envs(ON_POSTGRES),
    )?;
    tell("tests of the example");
    step::run(cargo_test().args(["--manifest-path", EXAMPLE_MANIFEST]))?;
    tell("all tests are done");
    Ok(())
}

/// Runs tests on one thread more than there are processors, as most of them wait now and then: for a process to start, for
/// the disk. What the environment says of it counts more.
fn cargo_test() -> Command {
    let mut cargo = step::cargo();
    cargo.args(["test", "--locked"]);
    let processors = std::thread::available_parallelism();
    if let (None, Ok(processors)) = (std::env::var_os(TEST_THREADS), processors) {
        cargo.env(TEST_THREADS, processors.saturating_add(1).to_string());
    }
    cargo
}

/// What the test harness of Rust reads.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// What has the tests' servers keep everything in PostgreSQL.
const ON_POSTGRES: [(&str, &str); 1] = [("KEYWRIGHT_TEST_STORAGE", "postgres")];

/// Builds the guests and the programs that tests run. In parallel, as it mostly waits for downloads, installs other programs and
/// builds the guests and clients in other languages.
fn build() -> Result<(), StepFailed> {
    thread::scope(|scope| {
        let others = scope.spawn(|| {
            programs::ensure();
            examples::build_all()?;
            clients::build_all()
        });
        let ours = guests::build(Which::All).and_then(|_| {
            // With the same packages as the tests, so that their dependencies are built once.
            step::run(step::cargo().args(["build", "--locked", "--workspace", "--bins"]))
        });
        let others = others.join().unwrap_or_else(|panic| resume_unwind(panic));
        ours.and(others)
    })
}

/// The client's tests that are run on PostgreSQL, too: where the order, the paging and the transactions of the database are
/// seen by a client.
const CLIENT_ON_POSTGRES: [&str; 3] = [
    "certificates::rotate::",
    "credentials::find::",
    "import::round_trip::",
];

/// Writes the golden files anew: the tests that compare them write them when the variable is set.
pub(crate) fn refresh_golden_files() -> Result<(), StepFailed> {
    build()?;
    step::run(
        cargo_test()
            .args([
                "--workspace",
                "--lib",
                "--bins",
                "--test",
                "plugins",
                "golden",
            ])
            .env("KEYWRIGHT_REFRESH_GOLDEN_FILES", "1"),
    )
}
