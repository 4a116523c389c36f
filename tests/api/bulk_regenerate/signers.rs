//! Which version of an authority signs.

use keywright_harness::Server;

use super::{authority, leaf, names};
use crate::{certificates::assert_signed_by, given};

#[tokio::test]
async fn what_is_regenerated_signs_with_its_new_version() {
    let server = Server::start().await;
    let root = authority(&server, "/root", None).await;
    for (name, ca) in [("/a", "/root"), ("/b", "/a"), ("/c", "/b")] {
        authority(&server, name, Some(ca)).await;
    }
    leaf(&server, "/leaf", "/c").await;
    let answer = server.bulk_regenerate("/root").await;
    assert_eq!(names(&answer), ["/a", "/b", "/c", "/leaf"]);
    assert_signed_by(&given::newest(&server, "/a").await, &root);
    for (name, ca) in [("/b", "/a"), ("/c", "/b"), ("/leaf", "/c")] {
        let (version, ca) = (
            given::newest(&server, name).await,
            given::newest(&server, ca).await,
        );
        assert_signed_by(&version, &ca);
    }
}

#[tokio::test]
async fn the_version_in_use_of_the_authority_itself_signs() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    let renewed = server.regenerate("/root").await.expect(200).json();
    server.bulk_regenerate("/root").await.expect(200);
    assert_signed_by(&given::newest(&server, "/leaf").await, &renewed);
}

/// The leaf is found first, because an old version of it was signed by the root; its newest one was signed two levels
/// below.
#[tokio::test]
async fn each_waits_for_the_one_that_signs_it_wherever_it_was_found() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    leaf(&server, "/leaf", "/root").await;
    authority(&server, "/a", Some("/root")).await;
    authority(&server, "/b", Some("/a")).await;
    leaf(&server, "/leaf", "/b").await;
    let answer = server.bulk_regenerate("/root").await;
    assert_eq!(names(&answer), ["/a", "/b", "/leaf"]);
    for (name, ca) in [("/leaf", "/b"), ("/b", "/a")] {
        assert_signed_by(
            &given::newest(&server, name).await,
            &given::newest(&server, ca).await,
        );
    }
}

#[tokio::test]
async fn authorities_that_signed_each_other_are_regenerated_once() {
    let server = Server::start().await;
    authority(&server, "/root", None).await;
    authority(&server, "/x", Some("/root")).await;
    let old_y = authority(&server, "/y", Some("/x")).await;
    authority(&server, "/x", Some("/y")).await;
    let answer = server.bulk_regenerate("/root").await;
    assert_eq!(names(&answer), ["/x", "/y"]);
    let (x, y) = (
        given::newest(&server, "/x").await,
        given::newest(&server, "/y").await,
    );
    assert_signed_by(&x, &old_y);
    assert_signed_by(&y, &x);
    let answer = server.bulk_regenerate("/x").await;
    assert_eq!(names(&answer), ["/y"]);
}
