//! The links in the documents.

use std::{collections::BTreeSet, fs, path::Path};

use keywright_harness::workspace;

use super::documents;

#[test]
fn links_in_the_documents_are_valid() {
    let mut links = 0;
    for document in documents() {
        let text = fs::read_to_string(workspace().join(&document)).unwrap();
        for target in targets(&text) {
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() {
                workspace().join(&document)
            } else {
                workspace().join(&document).with_file_name("").join(file)
            };
            assert!(file.exists(), "{document}: {target}");
            let is_there = heading.is_empty() || anchors(&file).contains(heading);
            assert!(is_there, "{document}: {target}");
        }
    }
    assert!(links > 100, "{links}");
}

/// Returns the targets of the links in a text, except for other sites.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("](").skip(1);
    let targets = behind.filter_map(|behind| Some(behind.split_once(')')?.0));
    targets.filter(|target| !target.contains("://"))
}

/// Returns the anchors of the headings of a document.
fn anchors(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchors = headings.map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    });
    anchors.collect()
}
