//! The parts common to all commands: the trait, the common arguments, the context of a run, examples, and shutdown signals.

use std::{
    fs, io, process,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use clap::Args;
use futures_util::future::select_all;
use serde::Serialize;
use tokio::{
    runtime, select,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    time::sleep,
};

pub(super) use crate::command_error::{CommandError, Completion};
use crate::{
    Client, ClientBuilder, Error,
    command_error::INTERRUPTED,
    output::{self, Output, Table},
    session::{Arguments, Directory, Settings, StoredSession},
};

/// A command with its arguments.
pub(crate) trait Run {
    /// Runs the command. A shutdown signal drops the future before it completes.
    async fn run(self, context: &Context) -> Result<Completion, CommandError>;
}

// The command's own arguments and the common arguments.
#[derive(Debug, Args)]
#[expect(
    missing_docs,
    reason = "a doc comment would replace the help of the command"
)]
pub struct Invocation<Own: Args> {
    #[command(flatten)]
    own: Own,
    #[command(flatten)]
    common: Arguments,
}

/// Runs a command until it completes or a shutdown signal arrives. A signal drops the command's future; `Drop` implementations
/// restore the terminal's echo and remove incomplete files.
pub(super) async fn invoke<Own: Args + Run>(
    invocation: Invocation<Own>,
) -> Result<Completion, CommandError> {
    let interruption = interruption()
        .map_err(|cause| CommandError::Other(format!("listening for signals: {cause}")))?;
    let context = Context::new(invocation.common)?;
    select! {
        biased;
        () = interruption => Err(CommandError::Interrupted),
        outcome = invocation.own.run(&context) => outcome,
    }
}

/// The settings and the output of a command.
pub(crate) struct Context {
    pub(crate) output: Output,
    pub(crate) settings: Settings,
}

impl Context {
    /// Combines the arguments with the environment, the session and the settings file.
    pub(crate) fn new(arguments: Arguments) -> Result<Self, CommandError> {
        let settings = Settings::gather(arguments)?;
        if let Some(file) = StoredSession::open_to_others(&settings.directory) {
            output::note(&format!(
                "{0}: other users can read this login; run `chmod 600 {0}`",
                file.display()
            ));
        }
        Ok(Self {
            output: Output::new(settings.output),
            settings,
        })
    }

    /// Writes the result of a complete command to standard output.
    pub(crate) fn show(
        &self,
        data: &(impl Serialize + ?Sized),
        table: impl FnOnce() -> Table,
    ) -> Result<Completion, CommandError> {
        self.output.show(data, table)?;
        Ok(Completion::Full)
    }

    /// Returns a client for the configured server with the configured identity.
    ///
    /// The client immediately stores new tokens of a session, so that later runs can use them even if this run fails.
    pub(crate) fn client(&self) -> Result<Client, CommandError> {
        let settings = &self.settings;
        if let Some(file) = &settings.malformed_session {
            return Err(CommandError::SessionMalformed(file.clone()));
        }
        let mut builder = reporting_retries(settings.anonymous_client()?);
        if !settings.has_identity() {
            // An unusable address is reported first.
            builder.build()?;
            return Err(Error::NotLoggedIn.into());
        }
        if let Some(grant) = &settings.grant {
            builder = builder.grant(grant.clone());
            builder = builder.login_options(settings.login_options.clone());
        }
        if let Some(tokens) = &settings.tokens {
            builder = builder.tokens(tokens.clone());
        }
        if let Some(source) = &settings.token_source {
            builder = builder.token_source(source.clone());
        }
        // A token or a client of the environment can be another caller than the saved login.
        if let (Some(session), None, None) =
            (&settings.session, &settings.grant, &settings.token_source)
        {
            builder = builder.login_options(session.login_options());
            builder = sharing_login(builder, session.clone(), &settings.directory);
        }
        Ok(builder.build()?)
    }
}

/// Makes the client renew the session together with other runs, and store its new tokens.
fn sharing_login(
    builder: ClientBuilder,
    session: StoredSession,
    directory: &Directory,
) -> ClientBuilder {
    let shared = Arc::new((Mutex::new(session), directory.clone()));
    let renewing = Arc::clone(&shared);
    let builder = builder.before_renewal(move || {
        let (session, directory) = &*renewing;
        let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
        session.begin_renewal(directory)
    });
    builder.on_new_tokens(move |tokens| {
        let (session, directory) = &*shared;
        let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(cause) = session.update_tokens(tokens, directory) {
            output::note(&format!("could not store the renewed login: {cause}"));
        }
    })
}

/// Makes the client report each wait before a retry.
pub(super) fn reporting_retries(builder: ClientBuilder) -> ClientBuilder {
    builder.on_wait(|wait| {
        let seconds = wait.duration.as_secs_f32();
        output::note(&format!(
            "{} is unavailable; retrying in {seconds:.1} s",
            wait.service
        ));
    })
}

/// Returns the examples section of a help text. Each example is a line with its purpose, which starts with `# `, and a line with
/// the shell command. Lines that start with `$ ` are not part of the help: tests run them before the command or, above the first
/// example, before all commands.
pub(crate) fn help(examples: &str) -> String {
    let shown = examples.lines().filter(|line| !line.starts_with("$ "));
    let shown = shown.map(|line| format!("\n  {line}"));
    format!("Examples:{}", shown.collect::<String>())
}

/// Starts listening for shutdown signals. The returned future completes at the first signal. From then on, the program has
/// [`STOP_TIME_MAX`] to stop before it is forced to exit.
///
/// A separate thread enforces this, because the main thread may be blocked on a file or a pipe.
fn interruption() -> io::Result<impl Future<Output = ()>> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let signals = {
        let _entered = runtime.enter();
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        let handled = kinds.into_iter().filter(|kind| !is_ignored(*kind));
        handled.map(signal).collect::<io::Result<Vec<_>>>()?
    };
    let (interrupted, first) = oneshot::channel();
    let watch = move || runtime.block_on(watch(signals, interrupted));
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)?;
    Ok(async move {
        if first.await.is_err() {
            // All signals are ignored.
            std::future::pending::<()>().await;
        }
    })
}

async fn watch(mut signals: Vec<Signal>, interrupted: oneshot::Sender<()>) {
    if signals.is_empty() {
        return;
    }
    select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
    let _ = interrupted.send(());
    sleep(STOP_TIME_MAX).await;
    process::exit(INTERRUPTED.into());
}

/// Returns whether the process was started with this signal ignored, for example by `nohup`. Such signals stay ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored_in(&status, kind)
}

fn is_ignored_in(status: &str, kind: SignalKind) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The lowest bit belongs to signal 1.
    let bit = u32::try_from(kind.as_raw_value() - 1).ok();
    let bit = bit.and_then(|shift| 1_u64.checked_shl(shift));
    mask.unwrap_or_default() & bit.unwrap_or_default() != 0
}

/// The time in which a command must stop before the program exits. It exceeds the time that an interrupted export waits for the
/// reader of its output.
const STOP_TIME_MAX: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_in_the_mask_of_ignored_signals_stay_ignored() {
        let status = |mask: &str| format!("Name:\tkeywright\nSigBlk:\tffff\nSigIgn:\t{mask}\n");
        let [interrupt, terminate, hang_up] = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        for (mask, kind, expected) in [
            ("0000000000000001", hang_up, true),
            ("0000000000000001", interrupt, false),
            ("0000000000000002", interrupt, true),
            ("0000000000004000", terminate, true),
            ("0000000000001000", terminate, false),
            ("nonsense", terminate, false),
        ] {
            assert_eq!(is_ignored_in(&status(mask), kind), expected, "{mask}");
        }
        assert!(!is_ignored_in("", hang_up));
    }
}
