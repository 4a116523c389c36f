//! Every test, with everything built that they need.

use crate::{
    guests::{self, EXAMPLE_MANIFEST, Which},
    programs,
    step::{self, StepFailed},
};

/// Builds what the tests need and runs them.
pub(crate) fn test(arguments: &[String]) -> Result<(), StepFailed> {
    programs::ensure();
    build()?;
    step::run(
        step::cargo()
            .args(["test", "--locked", "--workspace", "--no-fail-fast"])
            .args(arguments),
    )?;
    // The same cases once more, with another database behind the server.
    step::run(
        step::cargo()
            .args([
                "test",
                "--locked",
                "--workspace",
                "--no-fail-fast",
                "--test",
                "api",
            ])
            .args(arguments)
            .env("KEYWRIGHT_TEST_STORAGE", "postgres"),
    )?;
    // Of the client's, those in which much is read and written; all of them, where some were named.
    let client = ["test", "--locked", "--workspace", "--test", "client"];
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
        step::cargo()
            .args(client)
            .args(arguments)
            .env("KEYWRIGHT_TEST_STORAGE", "postgres"),
    )?;
    step::run(step::cargo().args(["test", "--locked", "--manifest-path", EXAMPLE_MANIFEST]))
}

/// Builds the guests and the programs that tests run.
fn build() -> Result<(), StepFailed> {
    guests::build(Which::All)?;
    // With the same packages as the tests, so that their dependencies are built once.
    step::run(step::cargo().args(["build", "--locked", "--workspace", "--bins"]))
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
        step::cargo()
            .args([
                "test",
                "--locked",
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
