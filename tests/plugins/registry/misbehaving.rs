//! Misbehaving registries. The error describes the misbehavior, and nothing is cached.

use std::{fs, net::Ipv4Addr};

use keywright_harness::{Asked, Reply, Stub, digest};

use super::{Workshop, assert_refused, login::manifest, plain_stub::PlainStub, protected};

/// The largest manifest, in bytes.
const MANIFEST_BYTES_MAX: usize = 256 * 1024;

/// A registry's responses to requests for the manifest and the component. The reference always has the digest of the correct manifest.
struct Case {
    manifest: fn(&str, &Asked, &str) -> Reply,
    component: fn(&Asked) -> Reply,
    expected: &'static str,
}

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

fn sound_manifest(manifest: &str, _: &Asked, _: &str) -> Reply {
    Reply::new(200, manifest)
}

fn sound_component(_: &Asked) -> Reply {
    Reply::bytes(COMPONENT)
}

const CASES: [Case; 13] = [
    Case {
        manifest: |manifest, _, _| Reply::new(200, &manifest.replace("wasm", "wasn")),
        component: sound_component,
        expected: "the manifest has the digest sha256:",
    },
    Case {
        manifest: sound_manifest,
        component: |_| Reply::bytes(b"\0asm\x0d\0\x01\x01"),
        expected: "the component has the digest sha256:",
    },
    Case {
        manifest: |manifest, _, _| {
            let blanks = " ".repeat(MANIFEST_BYTES_MAX + 1 - manifest.len());
            Reply::new(200, &format!("{manifest}{blanks}"))
        },
        component: sound_component,
        expected: "the manifest is larger than 262144 bytes",
    },
    Case {
        manifest: |manifest, _, _| {
            let blanks = " ".repeat(MANIFEST_BYTES_MAX - manifest.len());
            Reply::new(200, &format!("{manifest}{blanks}"))
        },
        component: sound_component,
        // As large as allowed, but not the requested one.
        expected: "the manifest has the digest sha256:",
    },
    Case {
        manifest: |manifest, _, _| Reply::endless(manifest),
        component: sound_component,
        expected: "the manifest is larger than 262144 bytes",
    },
    Case {
        manifest: sound_manifest,
        component: |_| Reply::bytes(b"\0asm\x0d\0\x01\0\0"),
        expected: "the component is larger than 8 bytes",
    },
    Case {
        manifest: sound_manifest,
        component: |_| Reply::endless("\0asm"),
        expected: "the component is larger than 8 bytes",
    },
    Case {
        manifest: |_, _, _| Reply::lost(),
        component: sound_component,
        expected: "the registry does not answer",
    },
    Case {
        manifest: |_, asked, url| {
            let path = asked.line.replace("GET ", "");
            Reply::new(307, "").header("Location", &format!("{url}{path}"))
        },
        component: sound_component,
        expected: "more than 5 redirects",
    },
    Case {
        manifest: |_, _, url| {
            let elsewhere = url.replace("https://", "http://");
            Reply::new(307, "").header("Location", &elsewhere)
        },
        component: sound_component,
        expected: "a redirect from https to another scheme",
    },
    Case {
        manifest: |_, _, _| {
            let message =
                r#"{"errors": [{"code": "UNKNOWN", "message": "out\nlevel=ERROR of order"}]}"#;
            Reply::new(500, message)
        },
        component: sound_component,
        expected: "with status 500, message \"UNKNOWN out level=ERROR of order\"",
    },
    Case {
        manifest: |_, _, _| Reply::new(401, "").header("WWW-Authenticate", "Negotiate"),
        component: sound_component,
        expected: "an unsupported kind of authentication",
    },
    Case {
        manifest: |_, _, url| {
            let realm = url.replace("https://", "http://");
            let challenge = format!("Bearer realm=\"{realm}/token\"");
            Reply::new(401, "").header("WWW-Authenticate", &challenge)
        },
        component: sound_component,
        expected: "its token server does not use https",
    },
];

/// Sends nothing, so only this case exceeds the time limit.
const HANGING: Case = Case {
    manifest: sound_manifest,
    component: |_| Reply::hanging(),
    expected: "it took longer than 2 s",
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
    let stub = Stub::start(move |asked, _, url| {
        if asked.line.contains("/manifests/") {
            manifest(&self::manifest(COMPONENT), asked, url)
        } else {
            component(asked)
        }
    });
    let workshop = Workshop::new();
    let host = stub.url().replace("https://", "");
    let digest = digest(self::manifest(COMPONENT).as_bytes());
    let limits =
        format!("[registry]\ncomponent_bytes_max = 8\nfetch_seconds_max = {fetch_seconds_max}");
    let options = workshop
        .options(&format!("oci://{host}/plain@{digest}"), "")
        .extra(&limits)
        .extra(&protected(&host, ""));
    assert_refused(&options, &["the plugin plain", &host, case.expected]);
    assert!(workshop.kept("").is_empty(), "{}", case.expected);
}

#[test]
fn descriptor_with_a_wrong_size_is_rejected() {
    for false_size in [0, COMPONENT.len() - 1, COMPONENT.len() + 1] {
        let true_size = format!("\"size\":{}", COMPONENT.len());
        let manifest = manifest(COMPONENT).replace(&true_size, &format!("\"size\":{false_size}"));
        let reference_digest = digest(manifest.as_bytes());
        let stub = Stub::start(move |asked, _, _| {
            if asked.line.contains("/manifests/") {
                Reply::new(200, &manifest)
            } else {
                Reply::bytes(COMPONENT)
            }
        });
        let workshop = Workshop::new();
        let host = stub.url().replace("https://", "");
        let options = workshop
            .options(&format!("oci://{host}/plain@{reference_digest}"), "")
            .extra(&protected(&host, ""));
        let expected = format!("has 8 bytes, but its descriptor states {false_size}");
        assert_refused(&options, &["the plugin plain", &host, &expected]);
        assert!(workshop.kept("").is_empty());
    }
}

#[test]
fn untrusted_certificate_is_rejected() {
    let stub = Stub::start(|_, _, _| Reply::new(200, ""));
    let workshop = Workshop::new();
    let host = stub.url().replace("https://", "");
    let reference = format!("oci://{host}/plain@{}", digest(b""));
    let other = workshop.path("other.pem");
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(Vec::new())
        .unwrap()
        .self_signed(&key)
        .unwrap();
    fs::write(&other, certificate.pem()).unwrap();
    let section = format!(
        "[[registry.hosts]]\nhost = \"{host}\"\nplain_http = false\ntrusted_authorities = \"{}\"",
        other.display()
    );
    let options = workshop.options(&reference, "").extra(&section);
    assert_refused(&options, &["the registry does not answer", "certificate"]);
    assert!(stub.asked().is_empty());
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
        let asked = proxy.heads();
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].starts_with(begin), "{asked:?}");
    }
}
