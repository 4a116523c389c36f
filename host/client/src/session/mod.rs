//! The settings of the command line, and its state between runs.
//!
//! # The folder
//!
//! `keywright` in the platform's configuration folder (`$XDG_CONFIG_HOME/keywright` or `~/.config/keywright`), unless
//! `KEYWRIGHT_CLIENT_DIRECTORY` names another folder. It is created with mode 0700; the mode of an existing folder is not changed.
//!
//! - `settings.toml`, written by you: see `SettingsFile`. It contains no secrets, so its mode is not checked.
//! - `session.json`, written by `keywright login` and deleted by `keywright logout`. It contains the server's address and tokens,
//!   never a password or a client secret. The tokens are only sent to that server. Every write sets mode 0600. If others can read
//!   the file, each run prints a warning and continues.
//!
//! Several runs may use the folder concurrently: a lock serializes renewals and other changes of the session. A run whose tokens
//! have expired first takes over the tokens that other runs of the same login have stored. It does not store its own if another run
//! has changed the stored login in the meantime.
//!
//! # Precedence
//!
//! Arguments override variables, variables override the session, and the session overrides `settings.toml`.
//!
//! | Variable | Argument | In `settings.toml` | Meaning |
//! |---|---|---|---|
//! | `KEYWRIGHT_CLIENT_SERVER` | `--server` | `server` | the server's address |
//! | `KEYWRIGHT_CLIENT_CA_CERT` | `--ca-cert` | `ca_cert` | the PEM file with the CAs to trust instead of the system's |
//! | `KEYWRIGHT_CLIENT_CERT` | `--cert` | `cert` | the file with the client certificate, in PEM |
//! | `KEYWRIGHT_CLIENT_KEY` | `--key` | `key` | the file with its private key, in PEM |
//! | `KEYWRIGHT_CLIENT_OUTPUT` | `--output` | `output` | `json`, `yaml` or `table` |
//! | `KEYWRIGHT_CLIENT_RETRIES` | none | `retries` | the maximum number of retries while the server is unavailable, 0 to 20 |
//! | `KEYWRIGHT_CLIENT_ID`, `KEYWRIGHT_CLIENT_SECRET` | none | none | a client's id and secret, with which each run logs in |
//! | `KEYWRIGHT_CLIENT_SCOPE`, `_AUDIENCE`, `_RESOURCE` | `--scope`, `--audience`, `--resource` of `login` | `scope`, `audience`, `resource` | parameters of a login |
//! | none | `--client-id` of `login` | `client_id` | the public client through which users log in |
//! | `KEYWRIGHT_TOKEN` | `--token-file` | none | an access token, or the file with it; `KEYWRIGHT_CLIENT_TOKEN` is an alias of the variable |
//! | `KEYWRIGHT_CLIENT_DIRECTORY` | none | none | the folder |
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
