//! Pulling: at the first start, never again after that, and at SIGHUP.

use std::fs;

use keywright_harness::{DockerRegistry, Server, digest, run_program};
use serde_json::json;

use super::{Workshop, assert_generates, assert_refused, served};

#[tokio::test]
async fn a_component_that_was_pushed_makes_values_also_when_its_registry_has_gone() {
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
    assert!(server.log().contains("so its registry is not asked"));
    drop(server);

    // What was kept is not trusted: a component and a manifest that were changed are pulled anew.
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
async fn at_sighup_another_digest_is_pulled_and_one_that_is_not_there_changes_nothing() {
    let Some(mut registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    workshop.build("other");
    let references = ["plain.wasm", "other"].map(|file| workshop.pushed(&registry, file, "1"));
    let server = Server::start_with(&workshop.options(&references[0], "")).await;
    assert_eq!(served(&server).await, workshop.digest("plain.wasm"));

    let told = server
        .reload_plugins(&workshop.options(&references[1], ""))
        .await;
    assert!(told.contains("the plugins were loaded again"), "{told}");
    assert_eq!(served(&server).await, workshop.digest("other"));

    let (place, _) = references[0].split_once('@').unwrap();
    let absent = format!("{place}@sha256:{}", "0".repeat(64));
    let refused = server.reload_plugins(&workshop.options(&absent, "")).await;
    assert!(refused.contains("calls use those that were loaded before"));
    assert!(server.log().contains("the manifest is not in the registry"));
    registry.stop();
    let refused = server.reload_plugins(&workshop.options(&absent, "")).await;
    assert!(refused.contains("calls use those that were loaded before"));
    assert!(server.log().contains("the registry does not answer"));
    assert_generates(&server, "/a").await;
    assert_eq!(served(&server).await, workshop.digest("other"));

    // The first one was kept.
    let told = server
        .reload_plugins(&workshop.options(&references[0], ""))
        .await;
    assert!(told.contains("the plugins were loaded again"), "{told}");
    assert_eq!(served(&server).await, workshop.digest("plain.wasm"));
}

#[test]
fn a_reference_without_a_digest_is_refused_with_how_to_find_it() {
    let options = Workshop::new().options("oci://registry.example.com/plain:1.0.0", "");
    let told = [
        "generators.plain.component",
        "it has no digest",
        "keywright plugin push",
    ];
    assert_refused(&options, &told);
}

#[tokio::test]
async fn the_digest_of_the_component_may_be_pinned_besides() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let workshop = Workshop::new();
    let reference = workshop.pushed(&registry, "plain.wasm", "1");
    let pinned = format!("sha256 = \"{}\"", "0".repeat(64));
    let told = [
        &*reference,
        "its SHA-256 is",
        "restore the pinned component",
    ];
    assert_refused(&workshop.options(&reference, &pinned), &told);
    let pinned = format!("sha256 = \"{}\"", workshop.digest("plain.wasm"));
    drop(Server::start_with(&workshop.options(&reference, &pinned)).await);
}

/// The largest component is the one that may be pulled: with one byte less, it is refused.
#[tokio::test]
async fn a_component_is_pulled_up_to_its_limit() {
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
    let told = format!("the component is larger than {} bytes", bytes - 1);
    assert_refused(&limited(bytes - 1), &[&told]);
    assert_eq!(workshop.kept("").len(), 0);
    drop(Server::start_with(&limited(bytes)).await);
}

#[tokio::test]
async fn what_is_no_component_of_ours_is_refused_with_what_it_is() {
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
    for (config, layers, told) in [
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
        (&config, vec![&module], "make a component of it"),
    ] {
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers,
            "mediaType": "application/vnd.oci.image.manifest.v1+json"});
        let digest = registry.put_manifest("plain", "1", &manifest).await;
        let reference = format!("oci://{}/plain@{digest}", registry.host());
        assert_refused(&workshop.options(&reference, ""), &[&reference, told]);
    }
}

#[tokio::test]
async fn check_config_pulls_what_was_not_pulled_and_keeps_nothing() {
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
    let told = format!(
        "generators.plain.component: loading it: the plugin plain (component {reference}) is refused: \
         the registry does not answer"
    );
    assert!(checked.output.contains(&told), "{checked:#?}");
    check("absent", &["--no-plugins"], 0);
    // What the server has kept is there.
    check("cache", &[], 0);
}

#[test]
fn what_is_in_a_registry_is_inspected_as_a_file_is() {
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
    let (place, _) = reference.split_once('@').unwrap();
    let refused = inspect(place, 1).errors;
    assert!(refused.contains("it has no digest"), "{refused}");
    let absent = inspect(&format!("{place}@sha256:{}", "0".repeat(64)), 1).errors;
    assert!(
        absent.contains("the manifest is not in the registry"),
        "{absent}"
    );
}
