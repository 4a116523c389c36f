use tempfile::TempDir;

use super::*;
use crate::Secret;

/// A folder with these settings and a session for this server.
fn folder(settings: &str, session: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FILE), settings).unwrap();
    if let Some(server) = session {
        let session = StoredSession {
            server: server.to_owned(),
            ca_cert: vec!["/session.pem".into()],
            client_certificate: None,
            tokens: Some(Tokens::new(Secret::new("token".to_owned()), None)),
            login_options: LoginOptions::default(),
        };
        session
            .write(&Directory::at(folder.path().to_owned()))
            .unwrap();
    }
    folder
}

fn of(
    folder: &TempDir,
    arguments: Arguments,
    environment: Environment,
) -> Result<Settings, SettingsRefused> {
    Settings::of(
        arguments,
        environment,
        Directory::at(folder.path().to_owned()),
    )
}

fn named(server: &str) -> Arguments {
    Arguments {
        server: Some(server.to_owned()),
        ..Arguments::default()
    }
}

#[test]
fn sessions_match_every_spelling_of_the_server_address() {
    let folder = folder("", Some("https://session"));
    for (server, is_found) in [
        ("https://session", true),
        (" https://session/ ", true),
        ("https://Session:443", true),
        ("HTTPS://session", true),
        ("https://session:8844", false),
        ("https://session/path", false),
        ("https://other", false),
        ("session", false),
    ] {
        let settings = of(&folder, named(server), Environment::default()).unwrap();
        assert_eq!(settings.session.is_some(), is_found, "{server}");
        assert_eq!(settings.tokens.is_some(), is_found, "{server}");
    }
}

#[test]
fn arguments_override_variables_then_session_then_file() {
    let settings = "server = \"https://file\"\nca_cert = \"file.pem\"\noutput = \"yaml\"";
    let variables = || Environment {
        server: Some("https://variable".to_owned()),
        output: Some("table".to_owned()),
        ..Environment::default()
    };
    let with_session = folder(settings, Some("https://session"));
    let without_session = folder(settings, None);
    let cases = [
        (
            &with_session,
            named("https://argument"),
            variables(),
            "https://argument",
        ),
        (
            &with_session,
            Arguments::default(),
            variables(),
            "https://variable",
        ),
        (
            &with_session,
            Arguments::default(),
            Environment::default(),
            "https://session",
        ),
        (
            &without_session,
            Arguments::default(),
            Environment::default(),
            "https://file",
        ),
    ];
    for (folder, arguments, environment, server) in cases {
        let settings = of(folder, arguments, environment).unwrap();
        assert_eq!(settings.server.as_deref(), Some(server));
    }
    let settings = of(&with_session, Arguments::default(), Environment::default()).unwrap();
    assert_eq!(settings.ca_cert, [PathBuf::from("/session.pem")]);
    assert_eq!(settings.output, Some(OutputFormat::Yaml));
    let settings = of(&without_session, Arguments::default(), variables()).unwrap();
    assert_eq!(settings.ca_cert, [without_session.path().join("file.pem")]);
    assert_eq!(settings.output, Some(OutputFormat::Table));
}

#[test]
fn stored_tokens_are_only_used_for_their_server() {
    let folder = folder("", Some("https://session"));
    let tokens = |arguments| {
        let settings = of(&folder, arguments, Environment::default()).unwrap();
        settings.tokens.is_some()
    };
    assert!(tokens(Arguments::default()));
    assert!(tokens(named("https://session/")));
    assert!(!tokens(named("https://other")));
    assert!(!tokens(named("https://session:444")));
}

#[test]
fn a_client_in_the_environment_overrides_the_session() {
    let folder = folder("", Some("https://session"));
    let environment = Environment {
        client_id: Some("app".to_owned()),
        client_secret: Some(Secret::new("secret".to_owned())),
        ..Environment::default()
    };
    let settings = of(&folder, Arguments::default(), environment).unwrap();
    assert!(settings.tokens.is_none() && settings.grant.is_some());
}

#[test]
fn a_token_file_overrides_variables_then_the_session() {
    let folder = folder("", Some("https://session"));
    let file = folder.path().join("token");
    fs::write(&file, "of-file\n").unwrap();
    let with_file = || Arguments {
        token_file: Some(file.clone()),
        ..Arguments::default()
    };
    let with_client = || Environment {
        client_id: Some("app".to_owned()),
        client_secret: Some(Secret::new("secret".to_owned())),
        ..Environment::default()
    };
    let with_token = || Environment {
        token: Some(("KEYWRIGHT_TOKEN", Secret::new("of-variable".to_owned()))),
        ..with_client()
    };
    for (arguments, environment, token, has_grant) in [
        (with_file(), with_token(), Some("of-file"), false),
        (
            Arguments::default(),
            with_token(),
            Some("of-variable"),
            true,
        ),
        (Arguments::default(), with_client(), None, true),
        (
            Arguments::default(),
            Environment::default(),
            Some("token"),
            false,
        ),
    ] {
        let settings = of(&folder, arguments, environment).unwrap();
        let found = settings.tokens.map(|tokens| tokens.access_token);
        assert_eq!(found.as_ref().map(Secret::expose), token);
        assert_eq!(settings.grant.is_some(), has_grant);
    }
}

#[test]
fn variables_override_the_file_for_login_parameters() {
    let folder = folder(
        "client_id = \"cli\"\nscope = \"of-file\"\naudience = \"of-file\"\nresource = \"of-file\"",
        None,
    );
    let environment = Environment {
        scope: Some("of-variable".to_owned()),
        ..Environment::default()
    };
    let settings = of(&folder, Arguments::default(), environment).unwrap();
    let options = settings.login_options;
    assert_eq!(options.client_id.as_deref(), Some("cli"));
    assert_eq!(options.scope.as_deref(), Some("of-variable"));
    assert_eq!(options.audience.as_deref(), Some("of-file"));
    assert_eq!(options.resource.as_deref(), Some("of-file"));
}

#[test]
fn invalid_settings_are_refused_by_name() {
    let plain = folder("", None);
    let environment = |set: fn(&mut Environment)| {
        let mut environment = Environment::default();
        set(&mut environment);
        environment
    };
    let cases = [
        (
            environment(|variables| variables.retries = Some("21".to_owned())),
            "KEYWRIGHT_CLIENT_RETRIES",
        ),
        (
            environment(|variables| variables.output = Some("xml".to_owned())),
            "KEYWRIGHT_CLIENT_OUTPUT",
        ),
        (
            environment(|variables| variables.client_id = Some("app".to_owned())),
            "missing KEYWRIGHT_CLIENT_SECRET",
        ),
        (
            environment(|variables| variables.cert = Some("/cert.pem".into())),
            "missing KEYWRIGHT_CLIENT_KEY",
        ),
    ];
    for (environment, words) in cases {
        let refused = of(&plain, Arguments::default(), environment).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
    let twenty = environment(|variables| variables.retries = Some("20".to_owned()));
    let settings = of(&plain, Arguments::default(), twenty).unwrap();
    assert_eq!(settings.retries_max, Some(20));

    for (text, words) in [
        ("servr = \"x\"", "servr"),
        ("retries = 21", "at most 20"),
        ("cert = \"cert.pem\"", "missing key"),
        ("server = ", "settings.toml"),
    ] {
        let folder = folder(text, None);
        let refused = of(&folder, Arguments::default(), Environment::default()).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

#[test]
fn a_missing_server_is_reported_with_the_options_to_set_it() {
    let settings = of(
        &folder("", None),
        Arguments::default(),
        Environment::default(),
    )
    .unwrap();
    let refused = settings.anonymous_client().unwrap_err();
    assert!(refused.to_string().contains("--server"));
}
