//! Compiled and pulled files are removed when no server has used them for a while.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use keywright_harness::{Options, Reply, Server, Stub, digest};

use super::{Workshop, login::manifest, path, protected};

#[tokio::test]
async fn unused_files_are_removed_and_loaded_ones_stay() {
    let workshop = Workshop::new();
    workshop.build("other.wasm");
    let component = fs::read(workshop.path("other.wasm")).unwrap();
    let manifest = manifest(&component);
    let reference_digest = digest(manifest.as_bytes());
    let registry = Stub::start(move |asked, _, _| {
        if asked.line.contains("/manifests/") {
            Reply::new(200, &manifest)
        } else {
            Reply::bytes(&component)
        }
    });
    let host = registry.url().replace("https://", "");
    let days = |options: Options| {
        let days = UNUSED_DAYS_MAX.to_string();
        options.environment("KEYWRIGHT_PLUGINS__CACHE_UNUSED_DAYS_MAX", &days)
    };
    let own = days(workshop.options(path(&workshop.path("plain.wasm")), ""));
    let server = Server::start_with(&own).await;
    let reference = format!("oci://{host}/plain@{reference_digest}");
    let others = days(
        workshop
            .options(&reference, "")
            .extra(&protected(&host, "")),
    );
    let other = Server::start_with(&others).await;
    let is_loaded = |path: &PathBuf| path.extension() != Some("entropy-lock".as_ref());
    let loaded: BTreeSet<PathBuf> = workshop.cached().into_iter().filter(is_loaded).collect();
    assert!(!workshop.kept("").is_empty());

    let nobodys = "f".repeat(64);
    for name in [
        format!("{nobodys}-1.cwasm"),
        format!("registry/{nobodys}.wasm"),
    ] {
        fs::write(workshop.path("cache").join(name), "").unwrap();
    }
    workshop.leave_unused();
    reload(&server, &own).await;
    assert_eq!(workshop.cached(), loaded);

    // The reload marks loaded files as used. The other server's files are no longer used.
    drop(other);
    reload(&server, &own).await;
    let own_digest = workshop.digest("plain.wasm");
    let is_own = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(&own_digest)
    };
    let loaded: BTreeSet<PathBuf> = loaded.iter().filter(is_own).cloned().collect();
    assert!(!loaded.is_empty());
    assert_eq!(workshop.cached(), loaded);
}

impl Workshop {
    /// Returns the compiled and pulled files.
    fn cached(&self) -> BTreeSet<PathBuf> {
        let folders = ["cache", "cache/registry"].map(|folder| self.path(folder));
        let files = folders
            .iter()
            .flat_map(|folder| fs::read_dir(folder).unwrap());
        let paths = files.map(|file| file.unwrap().path());
        paths.filter(|path| path.is_file()).collect()
    }

    /// Sets the last use of all files to before the limit.
    fn leave_unused(&self) {
        let unused = Duration::from_hours(UNUSED_DAYS_MAX * 24) + Duration::from_secs(1);
        for path in self.cached() {
            let file = File::open(path).unwrap();
            file.set_modified(SystemTime::now() - unused).unwrap();
        }
    }
}

async fn reload(server: &Server, options: &Options) {
    let reported = server.reload_plugins(options).await;
    assert!(reported.contains("reloaded the plugins"), "{reported}");
}

const UNUSED_DAYS_MAX: u64 = 2;
