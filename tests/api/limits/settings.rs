//! Valid settings of limits.

use std::fs;

use keywright_harness::{Options, Server};

#[test]
fn a_limit_out_of_range_is_refused_by_name() {
    for (setting, number) in [
        ("connections_max", "0"),
        ("connections_per_address_max", "0"),
        ("streams_per_connection_max", "0"),
        ("requests_max", "0"),
        ("requests_per_actor_max", "0"),
        ("requests_per_second_max", "0"),
        ("requests_per_second_max", "1000001"),
        ("header_bytes_max", "8191"),
        ("header_fields_max", "15"),
        ("uri_bytes_max", "1023"),
        ("request_bytes_max", "1023"),
        ("request_bytes_max", "268435457"),
        ("response_bytes_max", "1048575"),
        ("responses_bytes_max", "2097151"),
        ("responses_bytes_per_actor_max", "1048575"),
        ("handshake_seconds_max", "0"),
        ("header_seconds_max", "0"),
        ("body_seconds_max", "0"),
        ("write_seconds_max", "0"),
        ("write_seconds_max", "3601"),
        ("idle_seconds_max", "0"),
        ("connection_seconds_max", "0"),
        ("ping_interval_seconds", "0"),
        ("ping_seconds_max", "0"),
        ("shutdown_seconds_max", "0"),
        ("shutdown_seconds_max", "-1"),
    ] {
        let options = Options::default().server_settings(&format!("{setting} = {number}"));
        let refusal = Server::refusal(&options);
        assert!(refusal.contains(setting), "{refusal}");
        let is_negative = number.starts_with('-');
        let words = if is_negative { "must be" } else { number };
        assert!(refusal.contains(words), "{refusal}");
    }
}

#[test]
fn contradictory_limits_are_refused_by_name() {
    for (lines, names) in [
        (
            "connections_max = 10\nconnections_per_address_max = 11",
            ["connections_max", "connections_per_address_max"],
        ),
        (
            "requests_max = 10\nrequests_per_actor_max = 11",
            ["requests_max", "requests_per_actor_max"],
        ),
        (
            "header_bytes_max = 8192\nuri_bytes_max = 8193",
            ["header_bytes_max", "uri_bytes_max"],
        ),
        (
            "request_bytes_max = 1048577\nresponse_bytes_max = 1048576",
            ["request_bytes_max", "response_bytes_max"],
        ),
        (
            "response_bytes_max = 1048577\nresponses_bytes_max = 2097152\n\
             responses_bytes_per_actor_max = 2097152",
            ["response_bytes_max", "responses_bytes_max"],
        ),
        (
            "response_bytes_max = 2097153\nresponses_bytes_per_actor_max = 2097152",
            ["response_bytes_max", "responses_bytes_per_actor_max"],
        ),
        (
            "responses_bytes_max = 67108864\nresponses_bytes_per_actor_max = 67108865",
            ["responses_bytes_per_actor_max", "responses_bytes_max"],
        ),
    ] {
        let refusal = Server::refusal(&Options::default().server_settings(lines));
        for name in names {
            assert!(refusal.contains(name), "{refusal}");
        }
    }
}

#[tokio::test]
async fn the_open_file_limit_is_raised_for_the_connections() {
    let (soft, hard) = open_files("self");
    let connections_max = soft.min(900_000) + 1;
    // Three for each of the four readers of the database.
    let wanted = connections_max + 4 * 3 + 256;
    let options =
        Options::default().server_settings(&format!("connections_max = {connections_max}"));
    let server = Server::start_with(&options).await;
    let (raised, _) = open_files(&server.process_id().to_string());
    assert_eq!(raised, wanted.min(hard));
    let is_warned = server.log().contains("too few open files");
    assert_eq!(is_warned, hard < wanted, "{}", server.log());
}

/// The soft and the hard limit of open files of a process.
fn open_files(process: &str) -> (u64, u64) {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .unwrap();
    let mut numbers = line
        .split_whitespace()
        .map(|number| number.parse().unwrap_or(u64::MAX));
    (numbers.next().unwrap(), numbers.next().unwrap())
}
