//! `GET /api/v1/certificates` with `all_types`: certificates in credentials of other types.

use chrono::{DateTime, Utc};
use keywright_harness::{Options, ReusedServer, Server, Text};
use serde_json::{Value, json};

use super::{CERTIFICATES, Certificate, summary};
use crate::{
    external_certificates::{authority_for_days, expired_certificate},
    given,
};

const SVID: &str = "app-svid";

/// Starts a server with `/root` and `/svid`, an SVID that it signed.
async fn server_with_svid() -> ReusedServer {
    let options = Options::default()
        .plugin(SVID, "svid", &["random", "signing"], "")
        .watched();
    let server = Server::reused_with(&options).await;
    let parameters = json!({"is_ca": true, "key_usage": ["key_cert_sign"]});
    Certificate::generate(&server, "/root", parameters).await;
    let parameters = json!({"ca": "/root"});
    server.generated("/svid", SVID, parameters).await;
    server
}

async fn listed(server: &Server, query: &str) -> Vec<Value> {
    let response = server.get_json(&format!("{CERTIFICATES}{query}")).await;
    assert_eq!(given::fields(&response), ["certificates"]);
    response["certificates"].as_array().unwrap().clone()
}

fn svid_value(certificate: &str) -> Value {
    json!({"x509_svid": certificate, "x509_svid_key": "key"})
}

#[tokio::test]
async fn a_certificate_of_another_type_is_listed_only_on_request() {
    let server = server_with_svid().await;
    let root = summary(&server, "/root").await;
    assert_eq!(given::fields(&root), SUMMARY_WITH_ISSUED);
    for query in ["", "?all_types=false", "?all_types="] {
        let all = listed(&server, query).await;
        assert_eq!(given::names(&all), ["/root"], "{query}");
        assert_eq!(given::fields(&all[0]), &SUMMARY_WITH_ISSUED[..5], "{query}");
        assert_eq!(all[0]["signs"], json!([]));
    }
    let [svid, root] = listed(&server, "?all_types=true").await.try_into().unwrap();
    assert_eq!(root["type"], "certificate");
    assert_eq!(root["signs"], json!(["/svid"]));
    assert_eq!(
        given::fields(&svid),
        ["name", "id", "type", "versions", "signed_by", "signs"]
    );
    let record = &summary(&server, "/root").await["issued"][0];
    let newest = server.newest("/svid").await;
    assert_eq!(
        svid["versions"],
        json!([{
            "id": newest["id"],
            "expiry_date": record["expiry_date"],
            "transitional": false,
            "certificate_authority": false,
            "self_signed": false,
            "generated": true,
        }])
    );
    assert_eq!(svid["name"], "/svid");
    assert_eq!(svid["type"], SVID);
    assert_eq!(svid["signed_by"], "/root");
}

const SUMMARY_WITH_ISSUED: [&str; 6] = ["name", "id", "versions", "signed_by", "signs", "issued"];

#[tokio::test]
async fn another_type_is_found_by_name_only_on_request() {
    let server = server_with_svid().await;
    let value = json!({"x509_svid_key": "key"});
    server.stored("/plain", SVID, value).await;
    server.set_value("/value", "v").await;
    let all = listed(&server, "?all_types=true").await;
    assert_eq!(given::names(&all), ["/svid", "/root"]);
    let by_name = listed(&server, "?name=SVID&all_types=1").await;
    assert_eq!(by_name, [all[0].clone()]);
    let root = listed(&server, "?name=/root&all_types=true").await;
    assert_eq!(root[0]["type"], "certificate");
    for (query, status) in [
        ("?name=/svid", 404),
        ("?name=/svid&all_types=false", 404),
        ("?name=/plain&all_types=true", 404),
        ("?name=/value&all_types=true", 404),
        ("?all_types=yes", 400),
        ("?all_types=true&all_types=true", 400),
        ("?name=&all_types=true", 400),
    ] {
        let response = server.get(&format!("{CERTIFICATES}{query}")).await;
        response.expect(status).error();
    }
}

#[tokio::test]
async fn a_set_value_is_listed_with_the_expiry_of_its_certificate() {
    let server = server_with_svid().await;
    let external = authority_for_days("external", 20_000);
    server
        .stored("/set", SVID, svid_value(&external.certificate))
        .await;
    let set = listed(&server, "?all_types=true").await.swap_remove(0);
    assert_eq!(set["name"], "/set");
    let same = external.public();
    let same = Certificate::set(&server, "/same", same).await;
    let same = same.versions().await.swap_remove(0);
    for mark in [
        "expiry_date",
        "certificate_authority",
        "self_signed",
        "generated",
    ] {
        assert_eq!(set["versions"][0][mark], same[mark], "{mark}");
    }
    assert_eq!(set["signed_by"], "/set");
    let expires_at = same["expiry_date"].as_str().unwrap();
    let expires_at: DateTime<Utc> = expires_at.parse().unwrap();
    let days_left = (expires_at - Utc::now()).num_days();
    let find = async |days: i64| {
        let query = format!("path=/&expires-within-days={days}");
        server.found_names(&query).await
    };
    assert!(!find(days_left - 1).await.contains(&"/set".to_owned()));
    assert!(find(days_left + 1).await.contains(&"/set".to_owned()));
    // A value without a certificate is not listed.
    let value = json!({"x509_svid_key": "key"});
    server.stored("/set", SVID, value).await;
    assert!(!given::names(&listed(&server, "?all_types=true").await).contains(&"/set"));
    server.run_command("check").expect(0);
}

#[tokio::test]
async fn only_credentials_that_the_caller_may_read_are_listed() {
    let server = server_with_svid().await;
    let reader = server.as_client("reader").await;
    for (readable, expected) in [(None, vec![]), (Some("/svid"), vec!["/svid"])] {
        if let Some(name) = readable {
            server.grant(name, reader.actor(), &["read"]).await;
        }
        let response = reader.get(&format!("{CERTIFICATES}?all_types=true")).await;
        let response = response.expect(200).json();
        let all = response["certificates"].as_array().unwrap();
        assert_eq!(given::names(all), expected);
    }
    for (name, status) in [("/svid", 200), ("/root", 404)] {
        let path = format!("{CERTIFICATES}?all_types=true&name={name}");
        reader.get(&path).await.expect(status);
    }
}

#[tokio::test]
async fn a_malformed_certificate_in_a_declared_field_is_400() {
    let server = server_with_svid().await;
    for certificate in [
        "hunter2",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
    ] {
        let body = json!({"name": "/bad", "type": SVID, "value": svid_value(certificate)});
        let response = server.put("/api/v1/data", body).await.expect(400);
        let error = response.error();
        assert!(error.starts_with("x509_svid "), "{error}");
        error.assert_lacks(certificate);
    }
    server.stored("/empty", SVID, svid_value("")).await;
    let all = listed(&server, "?all_types=true").await;
    assert_eq!(given::names(&all), ["/svid", "/root"]);
}

#[tokio::test]
async fn certificates_are_counted_by_type() {
    let server = server_with_svid().await;
    server
        .stored("/expired", SVID, svid_value(&expired_certificate()))
        .await;
    let scrape = server.scrape().await;
    for (credential_type, days_left, number) in [
        ("certificate", "365", 1.0),
        ("certificate", "7", 0.0),
        (SVID, "7", 1.0),
        (SVID, "expired", 1.0),
        (SVID, "365", 0.0),
    ] {
        let labels = [("type", credential_type), ("days_left", days_left)];
        let counted = scrape.sum("keywright_certificates", &labels);
        assert_eq!(counted, Some(number), "{labels:?}");
    }
}
