//! `keywright set`.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use zeroize::Zeroizing;

use super::{
    Context, Example, Failure, Outcome, Verb, help,
    input::{metadata, text_of, without_line_end},
    shown::ShownVersion,
};
use crate::{SecretJson, SetCredential, output};

/// Store a value of your own.
///
/// The value comes from a prompt on a terminal, and from standard input otherwise, so that it stands neither in the shell's
/// history nor in the list of processes. One line end after it is left out. A value that has members, of any type but
/// `value` and `password`, is a JSON object, unless its members are said one by one.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Set {
    /// The credential's name.
    name: String,
    /// The credential's type.
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    credential_type: String,
    /// Read the value from a file; `-` is standard input.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    value_file: Option<PathBuf>,
    /// The value itself. Others on this machine can see it, and the shell keeps it: for what is no secret.
    #[arg(long, value_name = "VALUE", conflicts_with = "value_file")]
    value: Option<String>,
    #[command(flatten)]
    members: Members,
    /// What to keep besides, as a JSON object. It is not encrypted.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    metadata: Option<SecretJson>,
}

/// The members of a value, one by one.
#[derive(Debug, Args)]
#[group(multiple = true, conflicts_with_all = ["value", "value_file"])]
struct Members {
    /// The name of a user, whose password comes from a prompt or from standard input.
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// The file with a certificate, PEM. `-` is standard input, here as for the other members, of which one can have it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    certificate: Option<PathBuf>,
    /// The file with a private key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    private_key: Option<PathBuf>,
    /// The file with a public key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    public_key: Option<PathBuf>,
    /// The file with the certificate of the authority that signed the certificate, PEM.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    ca: Option<PathBuf>,
    /// The name of the stored authority that signed the certificate, instead of its certificate.
    #[arg(long, value_name = "NAME", conflicts_with = "ca")]
    ca_name: Option<String>,
}

impl Verb for Set {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        self.members.refuse_two_readers_of_standard_input()?;
        let client = context.client()?;
        let value = match (&self.value, &self.value_file) {
            (Some(value), _) => parsed(&self.credential_type, value)?,
            (None, Some(file)) => parsed(&self.credential_type, without_line_end(&text_of(file)?))?,
            (None, None) => match self.members.gathered().await? {
                Some(value) => value,
                None => asked(&self.credential_type).await?,
            },
        };
        let mut credential =
            SetCredential::new(&self.name, &self.credential_type, &value.exposed())?;
        if let Some(metadata) = self.metadata {
            credential = credential.metadata(metadata);
        }
        let version = client.set_credential(&credential).await?;
        context.output.show(&ShownVersion(&version))?;
        Ok(Outcome::Done)
    }
}

impl Members {
    /// The members that files hold.
    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = [
            ("ca", &self.ca),
            ("certificate", &self.certificate),
            ("private_key", &self.private_key),
            ("public_key", &self.public_key),
        ];
        files
            .into_iter()
            .filter_map(|(name, file)| Some((name, file.as_deref()?)))
    }

    /// What one member has read of standard input, another one can't: it would be empty.
    fn refuse_two_readers_of_standard_input(&self) -> Result<(), Failure> {
        let files = self.files().filter(|(_, file)| *file == Path::new("-"));
        let password = self.username.as_ref().map(|_| "password");
        let readers: Vec<_> = files.map(|(name, _)| name).chain(password).collect();
        if readers.len() < 2 {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "only one member can be read from standard input, and these would be: {}",
            readers.join(", ")
        )))
    }

    /// The value that the members make, if any was said.
    async fn gathered(&self) -> Result<Option<SecretJson>, Failure> {
        let mut members: Vec<(&str, Zeroizing<String>)> = Vec::new();
        for (name, file) in self.files() {
            members.push((name, text_of(file)?));
        }
        if let Some(name) = &self.ca_name {
            members.push(("ca_name", Zeroizing::new(name.clone())));
        }
        if let Some(username) = &self.username {
            let password = output::secret_of_input("Password").await?;
            members.push(("username", Zeroizing::new(username.clone())));
            members.push(("password", Zeroizing::new(password.expose().to_owned())));
        }
        if members.is_empty() {
            return Ok(None);
        }
        let members: BTreeMap<&str, &str> = members
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        Ok(Some(SecretJson::of(&members)?))
    }
}

/// The value that is typed, or that stands on standard input.
async fn asked(credential_type: &str) -> Result<SecretJson, Failure> {
    let is_user = credential_type.eq_ignore_ascii_case("user");
    if is_user && io::stdin().is_terminal() {
        let username = output::line("Username").await?;
        let password = output::secret_of_input("Password").await?;
        let members = BTreeMap::from([
            ("username", username.as_str()),
            ("password", password.expose()),
        ]);
        return Ok(SecretJson::of(&members)?);
    }
    let text = output::secret_of_input("Value").await?;
    parsed(credential_type, text.expose())
}

/// The value that a text means: the text itself for `value` and `password`, JSON for the other types of the API, and for
/// types of a server's own what it looks like.
fn parsed(credential_type: &str, text: &str) -> Result<SecretJson, Failure> {
    let credential_type = credential_type.to_ascii_lowercase();
    if TYPES_OF_TEXT.contains(&credential_type.as_str()) {
        return Ok(SecretJson::of(text)?);
    }
    match keywright_json::read::<SecretJson>(text) {
        Ok(value) if value.members().is_some() => Ok(value),
        _ if TYPES_OF_OBJECTS.contains(&credential_type.as_str()) => Err(Failure::Usage(format!(
            "the value of a credential of type {credential_type} must be a JSON object"
        ))),
        _ => Ok(SecretJson::of(text)?),
    }
}

const TYPES_OF_TEXT: [&str; 2] = ["password", "value"];

const TYPES_OF_OBJECTS: [&str; 5] = ["certificate", "json", "rsa", "ssh", "user"];

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[
    Example {
        does: "Store a password that another program writes",
        line: "openssl rand -base64 24 | keywright set /demo/token --type password",
        before: &[],
    },
    Example {
        does: "Store free JSON",
        line: r#"keywright set /demo/database --type json --value '{"host": "db.example", "port": 5432}'"#,
        before: &[],
    },
    Example {
        does: "Store a user, whose password stands in a file",
        line: "keywright set /demo/admin --type user --username admin <password.txt",
        before: &["printf secret >password.txt"],
    },
    Example {
        does: "Store a key pair",
        line: "keywright set /demo/deploy --type ssh --public-key deploy.pub --private-key deploy",
        before: &["printf public >deploy.pub", "printf private >deploy"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_means_depends_on_the_type() {
        let cases = [
            ("password", r#"{"a":1}"#, Some(r#""{\"a\":1}""#)),
            ("VALUE", "x", Some(r#""x""#)),
            ("json", r#"{"a":1.10}"#, Some(r#"{"a":1.10}"#)),
            ("json", "[1]", None),
            ("user", "secret", None),
            (
                "wireguard",
                r#"{"private_key":"x"}"#,
                Some(r#"{"private_key":"x"}"#),
            ),
            ("pin", "1234", Some(r#""1234""#)),
        ];
        for (credential_type, text, expected) in cases {
            let value = parsed(credential_type, text).ok();
            let value = value.as_ref().map(SecretJson::expose);
            assert_eq!(value, expected, "{credential_type} {text}");
        }
    }
}
