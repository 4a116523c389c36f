//! The pictures in the guide. `cargo xtask golden` recreates them.

use std::{collections::BTreeSet, env, fs};

use keywright_harness::{Text, workspace};
use serde_json::json;

use super::{Chromium, Look};
use crate::{given, server};

/// The pictures, each with the address of its page.
const PICTURES: [(&str, &str); 8] = [
    ("credentials", "/console?path=/pki"),
    ("credential", "/console/credential?name=/shop/database/user"),
    ("filters", "/console?expires-within-days=90"),
    ("generate", "/console/generate?type=user"),
    ("overview", "/console/overview"),
    ("certificates", "/console/certificates"),
    ("rotation", "/console/certificate/rotation?name=/pki/root"),
    (
        "explanation",
        "/console/permissions/explain?path=/shop/session-secret&actor=uaa-user:3f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b10&operation=read",
    ),
];

#[tokio::test]
async fn golden_pictures_of_the_guide_show_pages_that_exist() {
    let folder = workspace().join("host/docs/operating/pictures");
    let guide = fs::read_to_string(folder.with_file_name("console.md")).unwrap();
    let server = server().await;
    given::credentials(&server).await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    chromium
        .show_as(Look {
            width: WIDTH,
            ..Look::LIGHT
        })
        .await;
    for (name, path) in PICTURES {
        chromium.open(path).await;
        chromium.find("h1").await;
        assert!(!chromium.has(".failure").await, "{path}");
        if env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some() {
            let clip = json!({"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1});
            let picture = chromium.picture(clip, true).await;
            fs::write(folder.join(format!("{name}.png")), picture).unwrap();
        }
        guide.assert_contains(&format!("(pictures/{name}.png)"));
    }
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut names = BTreeSet::new();
    for file in files {
        let name = file.file_name().into_string().unwrap();
        assert!(
            file.metadata().unwrap().len() <= PICTURE_BYTES_MAX,
            "{name}"
        );
        names.insert(name);
    }
    let expected = PICTURES.map(|(name, _)| format!("{name}.png"));
    assert_eq!(names, BTreeSet::from(expected));
}

const WIDTH: u32 = 1_040;
const HEIGHT: u32 = 640;

/// The maximum size of a picture.
const PICTURE_BYTES_MAX: u64 = 80 * 1024;
