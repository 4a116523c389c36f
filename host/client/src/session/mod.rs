//! What configures the command line, and what it keeps between two runs.
//!
//! # The folder
//!
//! `keywright` in the platform's folder for configurations: `$XDG_CONFIG_HOME/keywright`, or `~/.config/keywright`; another
//! one by `KEYWRIGHT_CLIENT_DIRECTORY`. It is made with mode 0700; one that is there already is taken as it is.
//!
//! - `settings.toml`, which you write: see [`SettingsFile`]. No secret can stand in it, so nobody looks at its mode.
//! - `session.json`, which `keywright login` writes, and `keywright logout` deletes. It holds the server's address and tokens,
//!   never a password or the secret of a client. Tokens are sent to that server alone. Each time that it is written it has
//!   mode 0600, whatever it had before; each run that finds it with a mode that lets others read it says so, and goes on.
//!
//! Several runs may use the folder at once: what one of them changes in the session, it changes while the others wait. A run
//! that has renewed its tokens keeps them only where it still finds the login that it began with.
//!
//! # What goes before what
//!
//! An argument goes before a variable, a variable before the session, the session before `settings.toml`.
//!
//! | Variable | Argument | In `settings.toml` | Meaning |
//! |---|---|---|---|
//! | `KEYWRIGHT_CLIENT_SERVER` | `--server` | `server` | the server's address |
//! | `KEYWRIGHT_CLIENT_CA_CERT` | `--ca-cert` | `ca_cert` | the file with the authorities that alone are trusted, PEM |
//! | `KEYWRIGHT_CLIENT_CERT` | `--cert` | `cert` | the file with the client certificate, PEM |
//! | `KEYWRIGHT_CLIENT_KEY` | `--key` | `key` | the file with its private key, PEM |
//! | `KEYWRIGHT_CLIENT_OUTPUT` | `--output` | `output` | `json`, `yaml` or `table` |
//! | `KEYWRIGHT_CLIENT_RETRIES` | none | `retries` | how often a request is sent again while the server is not available, 0 to 20 |
//! | `KEYWRIGHT_CLIENT_ID`, `KEYWRIGHT_CLIENT_SECRET` | none | none | a client's id and secret: each run logs in by them |
//! | `KEYWRIGHT_CLIENT_SCOPE`, `_AUDIENCE`, `_RESOURCE` | `--scope`, `--audience`, `--resource` of `login` | `scope`, `audience`, `resource` | parameters of a login |
//! | none | `--client-id` of `login` | `client_id` | the public client through which users log in |
//! | `KEYWRIGHT_TOKEN` | `--token-file` | none | an access token, or the file with it; `KEYWRIGHT_CLIENT_TOKEN` is another name of the variable |
//! | `KEYWRIGHT_CLIENT_DIRECTORY` | none | none | the folder |
//!
//! The server's own settings are overridden by `KEYWRIGHT_SECTION__NAME`. No section is called `client_…`, and servers leave
//! variables alone whose names begin with `KEYWRIGHT_CLIENT_`. Proxies are taken from `HTTPS_PROXY`, `ALL_PROXY` and
//! `NO_PROXY`.

mod environment;
mod files;
mod settings;
mod stored;
mod token;

pub use files::{Directory, FileFailure};
pub use settings::{Arguments, OutputFormat, Settings, SettingsFile, SettingsRefused};
pub use stored::StoredSession;
