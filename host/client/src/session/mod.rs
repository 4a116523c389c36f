//! The settings of the command line, and its state between runs.
//!
//! # The folder
//!
//! `keywright` in the platform's configuration folder (`$XDG_CONFIG_HOME/keywright` or `~/.config/keywright`), unless
//! `KEYWRIGHT_CLIENT_DIRECTORY` names another folder. It is created with mode 0700; the mode of an existing folder is not changed.
//!
//! - `settings.toml`, written by you: see `SettingsFile`. It contains no secrets, so its mode is not checked.
//! - `session.json`, written by `keywright login` and deleted by `keywright logout`. It contains the server's address and tokens, never a
//!   password or a client secret. The tokens are only sent to that server and its identity provider. Every write sets mode 0600. If
//!   others can read the file, each run prints a warning and continues.
//!
//! Several runs may use the folder concurrently: a lock on the empty file `session.lock` serializes renewals and other changes of
//! the session. A run whose tokens have expired first takes over the tokens that other runs of the same login have stored. It does
//! not store its own if another run has changed the stored login in the meantime.
//!
//! # Precedence
//!
//! Arguments override variables, variables override the session, and the session overrides `settings.toml`.
//! `docs/operating/command-line.md` describes all settings.
//!
//! `KEYWRIGHT_SECTION__NAME` overrides a setting of the server. No section is called `client_…`, and servers ignore variables that
//! begin with `KEYWRIGHT_CLIENT_`. The client uses the proxies in `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`.

mod environment;
mod files;
mod settings;

pub(crate) use files::{Directory, OutputFormat, StoredSession};
pub(crate) use settings::{Arguments, Settings};

/// The largest configurable number of retries.
const RETRIES_MAX: u32 = 20;
