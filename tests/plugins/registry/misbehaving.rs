//! Misbehaving registries: the error describes the misbehavior, and nothing is cached. Credentials are not sent to other servers
//! that a registry's responses refer to, nor to a proxy for a registry on this machine.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
};

use keywright_harness::{
    Commanded, ReceivedRequest, Reply, Stub, TestCertificate, Text, digest, key_file, run_program,
};

use super::{Workshop, assert_refused, host, manifest, path, stub};

const MANIFEST_BYTES_MAX: usize = 256 * 1024;

/// A registry's responses to requests for the manifest and the component. The reference always has the digest of the
/// correct manifest.
struct Case {
    manifest: fn(&str, &ReceivedRequest, &str) -> Reply,
    component: fn(&ReceivedRequest) -> Reply,
    expected: &'static str,
}

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// A registry that does not misbehave.
const CORRECT: Case = Case {
    manifest: |manifest, _, _| Reply::new(200, manifest),
    component: |_| Reply::bytes(COMPONENT),
    expected: "",
};

const CASES: [Case; 13] = [
    Case {
        manifest: |manifest, _, _| Reply::new(200, &manifest.replace("wasm", "wasn")),
        expected: "the manifest has the digest sha256:",
        ..CORRECT
    },
    Case {
        component: |_| Reply::bytes(b"\0asm\x0d\0\x01\x01"),
        expected: "the component has the digest sha256:",
        ..CORRECT
    },
    Case {
        manifest: |manifest, _, _| {
            let blanks = " ".repeat(MANIFEST_BYTES_MAX + 1 - manifest.len());
            Reply::new(200, &format!("{manifest}{blanks}"))
        },
        expected: "the manifest is larger than 262144 bytes",
        ..CORRECT
    },
    Case {
        manifest: |manifest, _, _| {
            let blanks = " ".repeat(MANIFEST_BYTES_MAX - manifest.len());
            Reply::new(200, &format!("{manifest}{blanks}"))
        },
        // A manifest of the maximum size, but not the requested manifest.
        expected: "the manifest has the digest sha256:",
        ..CORRECT
    },
    Case {
        manifest: |manifest, _, _| Reply::endless(manifest),
        expected: "the manifest is larger than 262144 bytes",
        ..CORRECT
    },
    Case {
        component: |_| Reply::bytes(b"\0asm\x0d\0\x01\0\0"),
        expected: "the component is larger than 8 bytes",
        ..CORRECT
    },
    Case {
        component: |_| Reply::endless("\0asm"),
        expected: "the component is larger than 8 bytes",
        ..CORRECT
    },
    Case {
        manifest: |_, _, _| Reply::lost(),
        expected: "the registry does not respond",
        ..CORRECT
    },
    Case {
        manifest: |_, request, url| {
            let path = request.line.replace("GET ", "");
            Reply::new(307, "").header("Location", &format!("{url}{path}"))
        },
        expected: "more than 5 redirects",
        ..CORRECT
    },
    Case {
        manifest: |_, _, url| {
            let elsewhere = url.replace("https://", "http://");
            Reply::new(307, "").header("Location", &elsewhere)
        },
        expected: "a redirect from https to another scheme",
        ..CORRECT
    },
    Case {
        manifest: |_, _, _| {
            let message =
                r#"{"errors": [{"code": "UNKNOWN", "message": "out\nlevel=ERROR of order"}]}"#;
            Reply::new(500, message)
        },
        expected: "with status 500, message \"UNKNOWN out level=ERROR of order\"",
        ..CORRECT
    },
    Case {
        manifest: |_, _, _| Reply::new(401, "").header("WWW-Authenticate", "Negotiate"),
        expected: "an unsupported kind of authentication",
        ..CORRECT
    },
    Case {
        manifest: |_, _, url| {
            let realm = url.replace("https://", "http://");
            let challenge = format!("Bearer realm=\"{realm}/token\"");
            Reply::new(401, "").header("WWW-Authenticate", &challenge)
        },
        expected: "its token server does not use https",
        ..CORRECT
    },
];

/// Sends nothing, so only this case exceeds the time limit.
const HANGING: Case = Case {
    component: |_| Reply::hanging(),
    expected: "the transfer took longer than 2 s",
    ..CORRECT
};

#[test]
fn registry_errors_are_reported_and_nothing_is_cached() {
    for case in CASES {
        assert_is_reported(&case, 600);
    }
    assert_is_reported(&HANGING, 2);
}

/// Starts a server that pulls from such a registry with this time limit.
#[track_caller]
fn assert_is_reported(case: &Case, fetch_seconds_max: u32) {
    let (manifest, component) = (case.manifest, case.component);
    let stub = Stub::start(move |request, _, url| {
        if request.line.contains("/manifests/") {
            manifest(&self::manifest(COMPONENT), request, url)
        } else {
            component(request)
        }
    });
    let workshop = Workshop::new();
    let limits =
        format!("[registry]\ncomponent_bytes_max = 8\nfetch_seconds_max = {fetch_seconds_max}");
    let options = workshop.served(&stub, &self::manifest(COMPONENT), "");
    let expected = ["the plugin plain", &host(&stub), case.expected];
    assert_refused(&options.extra(&limits), &expected);
    assert!(workshop.pulled_files("").is_empty(), "{}", case.expected);
}

#[test]
fn descriptor_with_a_wrong_size_is_rejected() {
    for false_size in [0, COMPONENT.len() - 1, COMPONENT.len() + 1] {
        let true_size = format!("\"size\":{}", COMPONENT.len());
        let manifest = manifest(COMPONENT).replace(&true_size, &format!("\"size\":{false_size}"));
        let stub = stub(&manifest, COMPONENT);
        let workshop = Workshop::new();
        let options = workshop.served(&stub, &manifest, "");
        let expected = format!("has 8 bytes, but its descriptor states {false_size}");
        assert_refused(&options, &["the plugin plain", &host(&stub), &expected]);
        assert!(workshop.pulled_files("").is_empty());
    }
}

#[test]
fn manifest_that_is_also_an_index_is_rejected() {
    let manifest = manifest(COMPONENT).replacen('{', r#"{"manifests":[],"#, 1);
    let (workshop, stub) = (Workshop::new(), stub(&manifest, b""));
    let options = workshop.served(&stub, &manifest, "");
    let expected = "does not have the type of an OCI image manifest";
    assert_refused(&options, &["the plugin plain", expected]);
}

#[test]
fn untrusted_certificate_is_rejected() {
    let stub = Stub::start(|_, _, _| Reply::new(200, ""));
    let workshop = Workshop::new();
    let host = host(&stub);
    let reference = format!("oci://{host}/plain@{}", digest(b""));
    let other = workshop.path("other.pem");
    fs::write(&other, TestCertificate::root("other").certificate).unwrap();
    let section = format!(
        "[[registry.hosts]]\nhost = \"{host}\"\nplain_http = false\ntrusted_authorities = \"{}\"",
        other.display()
    );
    let options = workshop.options(&reference, "").extra(&section);
    assert_refused(&options, &["the registry does not respond", "certificate"]);
    assert!(stub.requests().is_empty());
}

/// Requests to registries on other machines use TLS unless configured otherwise.
#[test]
fn plain_http_needs_loopback_or_a_setting() {
    for (setting, begin) in [
        ("", "connect registry.test:443"),
        (
            "plain_http = true",
            "get http://registry.test/v2/plain/manifests/sha256:",
        ),
    ] {
        let proxy = PlainStub::start(Ipv4Addr::LOCALHOST, |_| (502, String::new(), ""));
        let workshop = Workshop::new();
        let reference = format!("oci://registry.test/plain@{}", digest(b""));
        let hosts = format!("[[registry.hosts]]\nhost = \"registry.test\"\n{setting}");
        let options = workshop
            .options(&reference, "")
            .extra(&hosts)
            .environment("ALL_PROXY", &proxy.url());
        assert_refused(&options, &["the plugin plain", &reference]);
        let heads = proxy.heads();
        assert_eq!(heads.len(), 1, "{heads:?}");
        assert!(heads[0].starts_with(begin), "{heads:?}");
    }
}

/// The error if another server requires a login.
const REFUSED: &str = "the challenge comes from another address than the registry's own";

/// The other server's challenges: for the password itself, or with its own token server.
const CHALLENGES: [&str; 2] = ["Basic realm=\"x\"", "Bearer realm=\"URL/token\""];

#[test]
fn redirect_target_does_not_get_the_password() {
    for challenge in CHALLENGES {
        let stranger = stranger(challenge);
        let workshop = Workshop::new();
        let component = fs::read(workshop.path("plain.wasm")).unwrap();
        let (manifest, elsewhere) = (manifest(&component), stranger.url());
        let served = manifest.clone();
        let registry = Stub::start(move |request, _, _| {
            if !request.head.contains("authorization: basic ") {
                return Reply::new(401, "").header("WWW-Authenticate", "Basic realm=\"own\"");
            }
            if request.line.contains("/manifests/") {
                return Reply::new(200, &served);
            }
            Reply::new(307, "").header("Location", &format!("{elsewhere}/one"))
        });
        let password = password_file(&workshop);
        let login = format!("user = \"ada\"\npassword_file = \"{password}\"");
        let options = workshop.served(&registry, &manifest, &login);
        assert_refused(&options, &["the plugin plain", REFUSED]);
        assert_eq!(stranger.lines(), ["GET /one", "GET /two"], "{challenge}");
        assert_no_credentials(stranger.requests().iter().map(|request| &request.head));
        stranger.requests()[0].head.assert_lacks("referer");
    }
}

#[test]
fn upload_target_does_not_get_the_password() {
    for challenge in CHALLENGES {
        let stranger = stranger(challenge);
        let elsewhere = stranger.url();
        let registry = Stub::start(move |request, _, _| {
            if !request.head.contains("authorization: basic ") {
                return Reply::new(401, "").header("WWW-Authenticate", "Basic realm=\"own\"");
            }
            if request.line.starts_with("HEAD ") {
                return Reply::new(404, "");
            }
            Reply::new(202, "").header("Location", &format!("{elsewhere}/upload?session=1"))
        });
        let workshop = Workshop::new();
        let authority = key_file("ca.pem");
        let trusted = ["--trusted-authorities", path(&authority)];
        let run = push(&workshop, &host(&registry), &trusted, &[]).expect(1);
        run.errors.assert_contains(REFUSED);
        let lines = stranger.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("PUT /upload?session=1"), "{lines:?}");
        assert_no_credentials(stranger.requests().iter().map(|request| &request.head));
    }
}

#[test]
fn password_is_not_sent_to_the_registry_of_another_release() {
    let workshop = Workshop::new();
    let registries = [(); 2].map(|()| stranger(CHALLENGES[0]));
    let [new, old] = registries.each_ref().map(|registry| {
        let digits = "0".repeat(64);
        format!("oci://{}/plain@sha256:{digits}", host(registry))
    });
    let (password, authority) = (password_file(&workshop), key_file("ca.pem"));
    let login = ["--user", "ada", "--password-file", &password];
    let trusted = ["--trusted-authorities", path(&authority)];
    let what = ["plugin", "test", &new, "--against", &old];
    let arguments = [&what[..], &login, &trusted].concat();
    let run = run_program(workshop.0.path(), &arguments, &[]).expect(1);
    run.errors.assert_contains("use --docker-config");
    for registry in registries {
        assert_eq!(registry.lines(), Vec::<String>::new());
    }
}

#[test]
fn plain_http_registry_needs_token_server_on_its_host() {
    let tokens = |address| {
        PlainStub::start(address, |_| {
            (200, String::new(), r#"{"token": "granted-token"}"#)
        })
    };
    let registry = |realm: String| {
        PlainStub::start(Ipv4Addr::LOCALHOST, move |head| {
            if head.contains("authorization: bearer granted-token") {
                accepted(head)
            } else {
                let challenge = format!("WWW-Authenticate: Bearer realm=\"{realm}/token\"\r\n");
                (401, challenge, "")
            }
        })
    };
    let workshop = Workshop::new();
    let own = tokens(Ipv4Addr::LOCALHOST);
    push(&workshop, &registry(own.url()).host(), &[], &[]).expect(0);
    assert!(own.heads()[0].contains("authorization: basic "));

    let other = tokens(Ipv4Addr::new(127, 0, 0, 2));
    let run = push(&workshop, &registry(other.url()).host(), &[], &[]).expect(1);
    let reported = "its token server is on another host and does not use https";
    run.errors.assert_contains(reported);
    assert_eq!(other.heads(), Vec::<String>::new());
}

#[test]
fn loopback_registry_bypasses_proxies() {
    let proxy = PlainStub::start(Ipv4Addr::LOCALHOST, |_| (502, String::new(), ""));
    let registry = PlainStub::start(Ipv4Addr::LOCALHOST, |head| {
        if head.contains("authorization: basic ") {
            accepted(head)
        } else {
            (
                401,
                "WWW-Authenticate: Basic realm=\"own\"\r\n".to_owned(),
                "",
            )
        }
    });
    let url = proxy.url();
    let url = url.as_str();
    let variables = [
        ("HTTP_PROXY", url),
        ("HTTPS_PROXY", url),
        ("ALL_PROXY", url),
        ("NO_PROXY", ""),
    ];
    push(&Workshop::new(), &registry.host(), &[], &variables).expect(0);
    assert_eq!(proxy.heads(), Vec::<String>::new());
}

/// Starts a server that requires a login, and would accept any.
fn stranger(challenge: &'static str) -> Stub {
    Stub::start(move |request: &ReceivedRequest, _, url| {
        if request.line.starts_with("GET /token") {
            return Reply::new(200, r#"{"token": "granted-token"}"#);
        }
        if request.line == "GET /one" {
            return Reply::new(307, "").header("Location", "/two");
        }
        Reply::new(401, "").header("WWW-Authenticate", &challenge.replace("URL", url))
    })
}

/// Returns the response of a registry that has every blob and accepts every manifest.
fn accepted(head: &str) -> (u16, String, &'static str) {
    let status = if head.starts_with("put ") { 201 } else { 200 };
    (status, String::new(), "")
}

/// Pushes as a user with a password.
fn push(workshop: &Workshop, host: &str, more: &[&str], variables: &[(&str, &str)]) -> Commanded {
    let (password, target) = (password_file(workshop), format!("oci://{host}/plain:1"));
    let login = ["--user", "ada", "--password-file", &password];
    let what = ["plugin", "push", "plain.wasm", &target];
    let arguments = [&what[..], &login, more].concat();
    run_program(workshop.0.path(), &arguments, variables)
}

/// Writes a file with the user's password.
fn password_file(workshop: &Workshop) -> String {
    let file = workshop.path("password");
    fs::write(&file, "hunter2").unwrap();
    file.to_str().unwrap().to_owned()
}

#[track_caller]
fn assert_no_credentials<'a>(heads: impl Iterator<Item = &'a String>) {
    for head in heads {
        head.assert_lacks("authorization");
    }
}

/// A server on a free port of a loopback address. It serves until the tests end.
struct PlainStub {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl PlainStub {
    /// Starts a server. `response` gets the head of a request in lower case, and returns a status, header lines and a body.
    pub(super) fn start(
        address: Ipv4Addr,
        response: impl Fn(&str) -> (u16, String, &'static str) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&heads);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut request = BufReader::new(stream);
                let mut head = String::new();
                while request.read_line(&mut head).is_ok_and(|length| length > 2) {}
                let head = head.to_ascii_lowercase();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "))
                    .map_or(0, |length| length.parse().unwrap());
                let _ = request.read_exact(&mut vec![0; length]);
                let (status, lines, body) = response(&head);
                recorded.lock().unwrap().push(head);
                let length = body.len();
                let _ = write!(
                    request.get_mut(),
                    "HTTP/1.1 {status} x\r\n{lines}content-length: {length}\r\nconnection: close\r\n\r\n{body}",
                );
            }
        });
        Self { address, heads }
    }

    /// Returns the host and port.
    pub(super) fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns the URL: scheme, host and port.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the heads of all requests so far, in lower case.
    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}
