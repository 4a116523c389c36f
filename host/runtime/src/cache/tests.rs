use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::engine::new_engine;

/// An empty component.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

fn kept(directory: &Path) -> PathBuf {
    fs::read_dir(directory)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
}

#[test]
fn a_cached_component_is_used_and_a_modified_one_is_recompiled() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep").join("cache");
    let engine = new_engine(1, 1 << 20).unwrap();
    let keys = CacheKeys::new(&[1; 32], []);
    let cache = Cache::open(&path, &keys, &engine).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    cache.component(&engine, "d", COMPONENT).unwrap();
    // With a cached file, the bytes are not read at all.
    cache.component(&engine, "d", b"nonsense").unwrap();
    assert_eq!(cache.used_files(), BTreeSet::from([kept(&path)]));
    let whole = fs::read(kept(&path)).unwrap();
    for place in [0, TAG_BYTES, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs::write(kept(&path), &damaged).unwrap();
        assert!(
            cache.component(&engine, "d", b"nonsense").is_err(),
            "byte {place}"
        );
        cache.component(&engine, "d", COMPONENT).unwrap();
        assert_eq!(fs::read(kept(&path)).unwrap(), whole);
    }
    fs::write(kept(&path), b"short").unwrap();
    assert!(cache.component(&engine, "d", b"nonsense").is_err());
}

#[test]
fn a_cached_file_is_not_used_for_another_component_or_key() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let engine = new_engine(1, 1 << 20).unwrap();
    let keys = CacheKeys::new(&[1; 32], []);
    let cache = Cache::open(directory.path(), &keys, &engine).unwrap();
    cache.component(&engine, "d", COMPONENT).unwrap();
    let others = CacheKeys::new(&[2; 32], []);
    let other = Cache::open(directory.path(), &others, &engine).unwrap();
    assert!(other.component(&engine, "d", b"nonsense").is_err());
    let renamed = other.directory.join(format!(
        "d-{}-{}.{COMPILED}",
        other.engine_hash,
        key_tag(&other.keys.writing)
    ));
    fs::copy(kept(directory.path()), &renamed).unwrap();
    assert!(other.component(&engine, "d", b"nonsense").is_err());
    fs::remove_file(renamed).unwrap();
    let name = kept(directory.path()).file_name().unwrap().to_owned();
    let copy = name.to_str().unwrap().replacen('d', "e", 1);
    fs::copy(kept(directory.path()), directory.path().join(copy)).unwrap();
    assert!(cache.component(&engine, "e", b"nonsense").is_err());
}

#[test]
fn a_file_under_an_earlier_key_is_used_and_rewritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let engine = new_engine(1, 1 << 20).unwrap();
    let before = CacheKeys::new(&[1; 32], []);
    let changed = CacheKeys::new(&[2; 32], [&[3; 32], &[1; 32]]);
    let after = CacheKeys::new(&[2; 32], []);
    let loaded = |keys: &CacheKeys, bytes: &[u8]| {
        let cache = Cache::open(&path, keys, &engine).unwrap();
        cache.component(&engine, "d", bytes).is_ok()
    };
    assert!(loaded(&before, COMPONENT));
    assert!(!loaded(&after, b"nonsense"));
    assert!(loaded(&changed, b"nonsense"));
    assert!(loaded(&after, b"nonsense"));
    assert!(loaded(&before, b"nonsense"));
}

#[test]
fn servers_with_different_keys_keep_separate_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let engine = new_engine(1, 1 << 20).unwrap();
    let keys = [[1; 32], [2; 32]].map(|key| CacheKeys::new(&key, []));
    let cache = |keys| Cache::open(&path, keys, &engine).unwrap();
    for keys in &keys {
        cache(keys).component(&engine, "d", COMPONENT).unwrap();
    }
    let files = || {
        let files = fs::read_dir(&path).unwrap();
        let files = files.map(|entry| fs::read(entry.unwrap().path()).unwrap());
        files.collect::<BTreeSet<_>>()
    };
    let written = files();
    assert_eq!(written.len(), 2);
    for keys in keys.iter().chain(&keys) {
        cache(keys).component(&engine, "d", b"nonsense").unwrap();
    }
    assert_eq!(files(), written);
}

#[test]
fn a_directory_that_others_can_access_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o710)).unwrap();
    let engine = new_engine(1, 1 << 20).unwrap();
    let keys = CacheKeys::new(&[1; 32], []);
    let Err(refused) = Cache::open(directory.path(), &keys, &engine) else {
        panic!("taken")
    };
    assert!(
        refused.to_string().contains("must have the mode 0700"),
        "{refused}"
    );
}
