//! The client against plugins that do what they should, and against others.
#![expect(
    clippy::unwrap_used,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod support;

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use keywright_core::ports::KeyManagement;
use keywright_kms::{KeyManagementPlugin, MESSAGE_BYTES_MAX, PluginSettings};
use kms_server::KeyFile;
use tokio::net::UnixListener;
use tonic::{Code, Status};

use support::{Authority, Fake, Place};

#[tokio::test]
async fn a_key_comes_back_as_it_was_and_another_plugins_is_none_of_its_own() {
    let (one, other) = (Place::new(), Place::new());
    one.serve(KeyFile::open(&one.path("key")).unwrap(), None);
    other.serve(KeyFile::open(&other.path("key")).unwrap(), None);
    let one = KeyManagementPlugin::connect(one.settings()).await.unwrap();
    let other = KeyManagementPlugin::connect(other.settings())
        .await
        .unwrap();
    let wrapped = one.wrap_key(&[7; 32]).await.unwrap();
    assert!(!wrapped.windows(8).any(|part| part == [7; 8]));
    let unwrapped = one.unwrap_key(&wrapped).await.unwrap().unwrap();
    assert_eq!(*unwrapped, [7; 32]);
    assert!(other.unwrap_key(&wrapped).await.unwrap().is_none());
}

#[tokio::test]
async fn a_plugin_of_another_version_is_refused() {
    for (version, said) in [
        (
            "v2",
            "speaks version \"v2\" of the protocol, and not v1beta1",
        ),
        ("", "speaks version \"\" of the protocol"),
    ] {
        let refused = refusal(Fake {
            version,
            ..Fake::default()
        });
        let refused = refused.await;
        assert!(refused.contains(said), "{refused}");
    }
}

#[tokio::test]
async fn a_plugin_that_is_not_there_is_named() {
    let place = Place::new();
    let refused = refused(place.settings()).await;
    assert!(refused.contains("kms.sock"), "{refused}");
    assert!(refused.contains("No such file or directory"), "{refused}");
}

#[tokio::test]
async fn a_plugin_that_never_answers_is_given_up() {
    let place = Place::new();
    let _silent = UnixListener::bind(place.path("kms.sock")).unwrap();
    let settings = PluginSettings {
        deadline: Duration::from_millis(50),
        ..place.settings()
    };
    let refused = refused(settings).await;
    assert!(refused.contains("failed to tell its version"), "{refused}");
}

#[tokio::test]
async fn a_plugin_that_is_away_for_a_moment_is_asked_again_and_one_that_refuses_is_not() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn away_twice(_: &[u8]) -> Result<Vec<u8>, Status> {
        match CALLS.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Err(Status::unavailable("starting")),
            _ => Ok(vec![1]),
        }
    }
    fn refuses(_: &[u8]) -> Result<Vec<u8>, Status> {
        CALLS.fetch_add(1, Ordering::SeqCst);
        Err(Status::permission_denied("not\nyou"))
    }
    let place = Place::new();
    let fake = Fake {
        encrypt: away_twice,
        decrypt: refuses,
        ..Fake::default()
    };
    place.serve(fake, None);
    let plugin = KeyManagementPlugin::connect(place.settings())
        .await
        .unwrap();
    assert_eq!(plugin.wrap_key(b"key").await.unwrap(), [1]);
    assert_eq!(CALLS.load(Ordering::SeqCst), 3);
    let refused = plugin.unwrap_key(b"key").await.unwrap_err().to_string();
    assert_eq!(CALLS.load(Ordering::SeqCst), 4);
    assert!(refused.contains("failed to decrypt a key"), "{refused}");
    assert!(refused.ends_with("not you"), "{refused}");
}

#[tokio::test]
async fn a_plugin_that_stays_away_is_asked_five_times_and_its_words_are_cut_off() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn away(_: &[u8]) -> Result<Vec<u8>, Status> {
        CALLS.fetch_add(1, Ordering::SeqCst);
        Err(Status::unavailable("a".repeat(200) + "b"))
    }
    let place = Place::new();
    let fake = Fake {
        encrypt: away,
        ..Fake::default()
    };
    place.serve(fake, None);
    let plugin = KeyManagementPlugin::connect(place.settings())
        .await
        .unwrap();
    let refused = plugin.wrap_key(b"key").await.unwrap_err().to_string();
    assert_eq!(CALLS.load(Ordering::SeqCst), 5);
    assert!(refused.ends_with(&"a".repeat(200)), "{refused}");
}

#[tokio::test]
async fn only_an_invalid_argument_says_that_a_key_is_not_the_plugins() {
    fn by_code(cipher: &[u8]) -> Result<Vec<u8>, Status> {
        Err(Status::new(Code::from_i32(cipher[0].into()), "no"))
    }
    let place = Place::new();
    let fake = Fake {
        decrypt: by_code,
        ..Fake::default()
    };
    place.serve(fake, None);
    let plugin = KeyManagementPlugin::connect(place.settings())
        .await
        .unwrap();
    for code in [
        Code::FailedPrecondition,
        Code::Internal,
        Code::NotFound,
        Code::OutOfRange,
        Code::Unauthenticated,
        Code::Unimplemented,
    ] {
        assert!(plugin.unwrap_key(&[code as u8]).await.is_err(), "{code:?}");
    }
    let unwrapped = plugin.unwrap_key(&[Code::InvalidArgument as u8]).await;
    assert!(unwrapped.unwrap().is_none());
}

#[tokio::test]
async fn a_message_is_as_large_as_it_may_be_and_no_larger() {
    /// The field's tag, and its length in three bytes.
    const OVERHEAD: usize = 4;
    let place = Place::new();
    let fake = Fake {
        encrypt: |_| Ok(vec![1; MESSAGE_BYTES_MAX - OVERHEAD]),
        decrypt: |_| Ok(vec![1; MESSAGE_BYTES_MAX - OVERHEAD + 1]),
        ..Fake::default()
    };
    place.serve(fake, None);
    let plugin = KeyManagementPlugin::connect(place.settings())
        .await
        .unwrap();
    let wrapped = plugin.wrap_key(b"key").await.unwrap();
    assert_eq!(wrapped.len(), MESSAGE_BYTES_MAX - OVERHEAD);
    assert!(plugin.unwrap_key(b"key").await.is_err());
}

#[tokio::test]
async fn with_authorities_a_plugin_must_prove_that_it_is_the_host() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let place = Place::new();
    place.serve(Fake::default(), Some(authority.issue("kms.internal")));
    let settings = |host: &str, trusted: Option<String>| PluginSettings {
        host: host.to_owned(),
        trusted_authorities_pem: trusted.map(String::into_bytes),
        ..place.settings()
    };
    let both = stranger.pem() + &authority.pem();
    for trusted in [authority.pem(), both] {
        let plugin = KeyManagementPlugin::connect(settings("kms.internal", Some(trusted)));
        assert_eq!(
            plugin.await.unwrap().wrap_key(b"key").await.unwrap(),
            b"key"
        );
    }
    for (host, trusted) in [
        ("kms.elsewhere", Some(authority.pem())),
        ("kms.internal", Some(stranger.pem())),
        ("kms.internal", None),
    ] {
        let refused = refused(settings(host, trusted)).await;
        assert!(refused.contains("failed to tell its version"), "{refused}");
    }
    for nothing in ["", "-----BEGIN CERTIFICATE-----\n"] {
        let refused = refused(settings("kms.internal", Some(nothing.to_owned()))).await;
        assert!(refused.contains("authorities"), "{refused}");
    }
    let refused = refused(settings("not a host", Some(authority.pem()))).await;
    assert!(
        refused.contains("\"not a host\", which is no host"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_plugin_without_tls_is_refused_where_authorities_are_configured() {
    let place = Place::new();
    place.serve(Fake::default(), None);
    let settings = PluginSettings {
        trusted_authorities_pem: Some(Authority::new().pem().into_bytes()),
        ..place.settings()
    };
    let refused = refused(settings).await;
    assert!(refused.contains("failed to tell its version"), "{refused}");
}

#[tokio::test]
async fn a_plugin_that_was_started_again_is_found_again() {
    let place = Place::new();
    let serving = place.serve(Fake::default(), None);
    let plugin = KeyManagementPlugin::connect(place.settings())
        .await
        .unwrap();
    serving.abort();
    fs::remove_file(place.path("kms.sock")).unwrap();
    place.serve(Fake::default(), None);
    assert_eq!(plugin.wrap_key(b"key").await.unwrap(), b"key");
}

async fn refusal(fake: Fake) -> String {
    let place = Place::new();
    place.serve(fake, None);
    refused(place.settings()).await
}

async fn refused(settings: PluginSettings) -> String {
    let connected = KeyManagementPlugin::connect(settings).await;
    connected.err().unwrap().to_string()
}
