//! Pulling: at the first start, never again after that, and at SIGHUP.

use std::fs;

use keywright_harness::{DockerRegistry, Server, digest, run_program};
use serde_json::json;

use super::{Workshop, assert_generates, assert_refused, served};

#[tokio::test]
async fn cached_component_works_without_its_registry() {
    let Some(mut registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1.0.0");
    let options = workshop.options(&reference, "");
    let server = Server::start_with(&options).await;
    assert_generates(&server, "/a").await;
    assert_eq!(served(&server).await, workshop.digest("plain.wasm"));
    assert!(
        server
            .log()
            .contains("pulled the component from its registry")
    );
    let folder = server.stop().await;

    registry.stop();
    let server = Server::start_in(folder, &options).await;
    assert_generates(&server, "/b").await;
    assert!(server.log().contains("used the cached component"));
    drop(server);

    // Cached files are not trusted: a modified component or manifest is pulled again.
    let kept = workshop.kept(".wasm");
    assert_eq!(kept.len(), 1);
    fs::write(&kept[0], b"\0asm\x0d\0\x01\0").unwrap();
    let away = [
        "the plugin plain",
        &reference,
        "the registry does not answer",
    ];
    let said = assert_refused(&options, &away);
    assert!(said.contains("pulling it again"), "{said}");
    registry.start_again();
    drop(Server::start_with(&options).await);
    let mended = fs::read(&workshop.kept(".wasm")[0]).unwrap();
    assert_eq!(
        digest(&mended),
        format!("sha256:{}", workshop.digest("plain.wasm"))
    );
    let manifest = &workshop.kept(".manifest.json")[0];
    let changed = fs::read_to_string(manifest)
        .unwrap()
        .replace("wasm", "wasn");
    fs::write(manifest, changed).unwrap();
    drop(Server::start_with(&options).await);
    registry.stop();
    drop(Server::start_with(&options).await);
}

#[tokio::test]
async fn sighup_pulls_another_digest() {
    let Some(mut registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    workshop.build("other");
    let references = ["plain.wasm", "other"].map(|file| workshop.pushed(&registry, file, "1"));
    let server = Server::start_with(&workshop.options(&references[0], "")).await;
    assert_eq!(served(&server).await, workshop.digest("plain.wasm"));

    let expected = server
        .reload_plugins(&workshop.options(&references[1], ""))
        .await;
    assert!(expected.contains("reloaded the plugins"), "{expected}");
    assert_eq!(served(&server).await, workshop.digest("other"));

    let (repository, _) = references[0].split_once('@').unwrap();
    let absent = format!("{repository}@sha256:{}", "0".repeat(64));
    let refused = server.reload_plugins(&workshop.options(&absent, "")).await;
    assert!(refused.contains("calls use those that were loaded before"));
    assert!(server.log().contains("the manifest is not in the registry"));
    registry.stop();
    let refused = server.reload_plugins(&workshop.options(&absent, "")).await;
    assert!(refused.contains("calls use those that were loaded before"));
    assert!(server.log().contains("the registry does not answer"));
    assert_generates(&server, "/a").await;
    assert_eq!(served(&server).await, workshop.digest("other"));

    // The first one is cached.
    let expected = server
        .reload_plugins(&workshop.options(&references[0], ""))
        .await;
    assert!(expected.contains("reloaded the plugins"), "{expected}");
    assert_eq!(served(&server).await, workshop.digest("plain.wasm"));
}

#[test]
fn reference_without_a_digest_is_rejected_with_a_remedy() {
    let options = Workshop::new().options("oci://registry.example.com/plain:1.0.0", "");
    let expected = [
        "generators.plain.component",
        "it has no digest",
        "keywright plugin push",
    ];
    assert_refused(&options, &expected);
}

#[tokio::test]
async fn component_digest_can_also_be_pinned() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let pinned = format!("sha256 = \"{}\"", "0".repeat(64));
    let expected = [
        &*reference,
        "its SHA-256 is",
        "restore the pinned component",
    ];
    assert_refused(&workshop.options(&reference, &pinned), &expected);
    let pinned = format!("sha256 = \"{}\"", workshop.digest("plain.wasm"));
    drop(Server::start_with(&workshop.options(&reference, &pinned)).await);
}

/// A component of exactly the maximum size is pulled. With a limit one byte lower, it is rejected.
#[tokio::test]
async fn component_is_pulled_up_to_the_size_limit() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let bytes = fs::metadata(workshop.path("plain.wasm")).unwrap().len();
    let limited = |bytes: u64| {
        let limit = format!("[registry]\ncomponent_bytes_max = {bytes}");
        workshop.options(&reference, "").extra(&limit)
    };
    let expected = format!("the component is larger than {} bytes", bytes - 1);
    assert_refused(&limited(bytes - 1), &[&expected]);
    assert_eq!(workshop.kept("").len(), 0);
    drop(Server::start_with(&limited(bytes)).await);
}

#[tokio::test]
async fn other_artifacts_are_rejected_with_the_reason() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let config = registry
        .put("plain", "application/vnd.wasm.config.v0+json", b"{}")
        .await;
    let image = registry
        .put("plain", "application/vnd.oci.image.config.v1+json", b"{}")
        .await;
    let module = registry
        .put("plain", "application/wasm", b"\0asm\x01\0\0\0")
        .await;
    let layer = registry
        .put("plain", "application/vnd.oci.image.layer.v1.tar", b"tar")
        .await;
    for (config, layers, expected) in [
        (
            &image,
            vec![&module],
            "its configuration is not of the type",
        ),
        (&config, vec![&layer], "its layer is not of the type"),
        (
            &config,
            vec![&module, &module],
            "it must have exactly one layer",
        ),
        (&config, vec![&module], "convert it to a component"),
    ] {
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers,
            "mediaType": "application/vnd.oci.image.manifest.v1+json"});
        let digest = registry.put_manifest("plain", "1", &manifest).await;
        let reference = format!("oci://{}/plain@{digest}", registry.host());
        assert_refused(&workshop.options(&reference, ""), &[&reference, expected]);
    }
}

#[tokio::test]
async fn check_config_pulls_and_caches_nothing() {
    let Some(mut registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let server = Server::start_with(&workshop.options(&reference, "")).await;
    let file = server.directory().join("keywright.toml");
    let check = |cache: &str, arguments: &[&str], status| {
        let cache = workshop.path(cache);
        let variable = (
            "KEYWRIGHT_PLUGINS__CACHE_DIRECTORY",
            cache.to_str().unwrap(),
        );
        let arguments = [&["check-config", file.to_str().unwrap()], arguments].concat();
        run_program(server.directory(), &arguments, &[variable]).expect(status)
    };
    check("absent", &[], 0);
    assert!(!workshop.path("absent").exists());
    registry.stop();
    let checked = check("absent", &[], 1);
    let expected = format!(
        "generators.plain.component: loading it: the plugin plain (component {reference}) is refused: \
         the registry does not answer"
    );
    assert!(checked.output.contains(&expected), "{checked:#?}");
    check("absent", &["--no-plugins"], 0);
    // The server's cache has the component.
    check("cache", &[], 0);
}

#[test]
fn inspect_accepts_registry_references() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let inspect = |component: &str, status| {
        let arguments = ["plugin", "inspect", component];
        run_program(workshop.0.path(), &arguments, &[]).expect(status)
    };
    let inspected = inspect(&reference, 0).output;
    assert_eq!(
        inspected,
        inspect("plain.wasm", 0)
            .output
            .replace("plain.wasm", &reference)
    );
    assert!(inspected.contains(&workshop.digest("plain.wasm")));
    let (repository, _) = reference.split_once('@').unwrap();
    let refused = inspect(repository, 1).errors;
    assert!(refused.contains("it has no digest"), "{refused}");
    let absent = inspect(&format!("{repository}@sha256:{}", "0".repeat(64)), 1).errors;
    assert!(
        absent.contains("the manifest is not in the registry"),
        "{absent}"
    );
}
