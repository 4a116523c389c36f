//! The listener and its limits.

use std::num::NonZeroU32;

use keywright_api::{Limits, RequestLimits};
use keywright_core::response_memory::ResponseLimits;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ListenAddress, TlsConfig, number::Number};

/// The listener and its limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSection {
    /// The address and port to listen on: `127.0.0.1:8844`, `[::1]:8844` or `localhost:8844`. The server listens on all
    /// addresses of a host name that the machine has; it resolves the name once, when it starts.
    pub(crate) listen: ListenAddress,
    /// The server's certificate, and its clients'.
    pub(crate) tls: TlsConfig,

    /// The most connections that are open at once. While all places are taken, connections that have been idle for a second are
    /// ended, and further ones wait to be accepted.
    #[serde(default)]
    pub(crate) connections_max: Number<1, 1_000_000, 4_096>,
    /// The most connections of one client address (of one /64 network, with IPv6) that are open at once; further ones are
    /// closed at once. A quarter of `connections_max` where nothing is said. Behind a balancer that shows its own address
    /// for all clients, this must be as large as `connections_max`.
    connections_per_address_max: Option<Number<1, 1_000_000, 1_024>>,
    /// The most requests under way at once on one HTTP/2 connection.
    #[serde(default)]
    pub(crate) streams_per_connection_max: Number<1, 10_000, 128>,
    /// The most authenticated requests under way at once; further ones are answered with 503. What needs no identity
    /// (`/health`, `/info`, and everything that is answered with 401) takes no place.
    #[serde(default)]
    pub(crate) requests_max: Number<1, 1_000_000, 1_024>,
    /// The most authenticated requests that one actor has under way at once; further ones are answered with 429. A quarter of
    /// `requests_max` where nothing is said.
    requests_per_actor_max: Option<Number<1, 1_000_000, 256>>,
    /// The most requests of one actor in a second, and in one burst; further ones are answered with 429. There is no such
    /// limit where nothing is said.
    requests_per_second_max: Option<Number<1, 1_000_000, 1_000>>,

    /// The largest head of a request, in bytes; a larger one is answered with 431.
    #[serde(default)]
    pub(crate) header_bytes_max: Number<8_192, 1_048_576, 65_536>,
    /// The most header fields of a request; more are answered with 431.
    #[serde(default)]
    pub(crate) header_fields_max: Number<16, 1_024, 100>,
    /// The longest path and query of a request, in bytes; longer ones are answered with 414.
    #[serde(default)]
    pub(crate) uri_bytes_max: Number<1_024, 65_536, 8_192>,
    /// The largest body of a request, in bytes; a larger one is answered with 413.
    #[serde(default)]
    pub(crate) request_bytes_max: Number<1_024, 268_435_456, 1_048_576>,

    /// The largest response, in bytes. A request for a larger one is answered with 413.
    #[serde(default)]
    pub(crate) response_bytes_max: Number<1_048_576, 1_073_741_824, 33_554_432>,
    /// The most bytes of all responses together that are in memory at once, until their clients have taken them. Further ones
    /// are answered with 503. Responses of up to 128 KiB do not count. While a response is made, it counts twice.
    #[serde(default)]
    pub(crate) responses_bytes_max: Number<2_097_152, 1_099_511_627_776, 268_435_456>,
    /// The most bytes of the responses to one actor together. Further ones are answered with 429. A quarter of
    /// `responses_bytes_max` by default.
    responses_bytes_per_actor_max: Option<Number<1_048_576, 1_099_511_627_776, 67_108_864>>,

    /// How long a TLS handshake may take, in seconds.
    #[serde(default)]
    pub(crate) handshake_seconds_max: Number<1, 3_600, 10>,
    /// How long the head of a request may take to arrive, in seconds: the first one of a connection from the end of the
    /// handshake, one that follows from its first byte (HTTP/1.1), or within `idle_seconds_max` (HTTP/2).
    #[serde(default)]
    pub(crate) header_seconds_max: Number<1, 3_600, 15>,
    /// How long the body of a request may take to arrive, in seconds; a slower one is answered with 408.
    #[serde(default)]
    pub(crate) body_seconds_max: Number<1, 3_600, 30>,
    /// How long a client may take nothing of what is being sent to it, in seconds; then its connection is cut off.
    #[serde(default)]
    pub(crate) write_seconds_max: Number<1, 3_600, 30>,
    /// How long a connection may be open without a request under way, in seconds.
    #[serde(default)]
    pub(crate) idle_seconds_max: Number<1, 86_400, 120>,
    /// How long a connection may be open, in seconds; then what is under way is finished and the client connects anew. So
    /// a replaced certificate of the server, and an expired one of a client, are not in use for longer.
    #[serde(default)]
    pub(crate) connection_seconds_max: Number<1, 604_800, 3_600>,
    /// How often the client of an HTTP/2 connection is asked whether it is still there, in seconds.
    #[serde(default)]
    pub(crate) ping_interval_seconds: Number<1, 86_400, 30>,
    /// How long the answer to that may take, in seconds; then the connection is ended.
    #[serde(default)]
    pub(crate) ping_seconds_max: Number<1, 3_600, 20>,
    /// How long requests under way may go on after the server was told to end, in seconds.
    #[serde(default)]
    pub(crate) shutdown_seconds_max: Number<1, 86_400, 30>,
}

impl ServerSection {
    /// The most connections of one client address that are open at once.
    pub(crate) fn connections_per_address_max(&self) -> usize {
        let all = self.connections_max.count();
        self.connections_per_address_max
            .map_or_else(|| all.div_ceil(SHARE_OF_ONE_ADDRESS), Number::count)
    }

    /// The most authenticated requests of one actor that are under way at once.
    fn requests_per_actor_max(&self) -> usize {
        let all = self.requests_max.count();
        self.requests_per_actor_max
            .map_or_else(|| all.div_ceil(SHARE_OF_ONE_ACTOR), Number::count)
    }

    /// How much of a request's body is taken.
    pub(crate) fn body_limits(&self) -> Limits {
        Limits {
            body_bytes_max: self.request_bytes_max.count(),
            body_deadline: self.body_seconds_max.seconds(),
        }
    }

    /// Which requests are taken.
    pub(crate) fn request_limits(&self) -> RequestLimits {
        RequestLimits {
            requests_max: self.requests_max.count(),
            requests_per_actor_max: self.requests_per_actor_max(),
            requests_per_second_max: self
                .requests_per_second_max
                .and_then(|requests| NonZeroU32::new(requests.count_u32())),
            uri_bytes_max: self.uri_bytes_max.count(),
            header_fields_max: self.header_fields_max.count(),
        }
    }

    /// The most bytes of the responses to one actor together.
    fn responses_bytes_per_actor_max(&self) -> usize {
        let all = self.responses_bytes_max.count();
        self.responses_bytes_per_actor_max
            .map_or_else(|| all.div_ceil(SHARE_OF_ONE_ACTOR), Number::count)
    }

    /// How much memory responses may take.
    pub(crate) fn response_limits(&self) -> ResponseLimits {
        ResponseLimits {
            response_bytes_max: self.response_bytes_max.count(),
            responses_bytes_max: self.responses_bytes_max.count(),
            responses_bytes_per_actor_max: self.responses_bytes_per_actor_max(),
        }
    }

    /// The settings that don't agree with others, and why.
    pub(crate) fn mistakes(&self) -> Vec<(String, String)> {
        let pairs = [
            (
                (
                    "connections_per_address_max",
                    self.connections_per_address_max(),
                ),
                ("connections_max", self.connections_max.count()),
            ),
            (
                ("requests_per_actor_max", self.requests_per_actor_max()),
                ("requests_max", self.requests_max.count()),
            ),
            (
                ("uri_bytes_max", self.uri_bytes_max.count()),
                ("header_bytes_max", self.header_bytes_max.count()),
            ),
            (
                ("response_bytes_max", self.response_bytes_max.count()),
                // While it is made, it counts twice.
                (
                    "responses_bytes_max / 2",
                    self.responses_bytes_max.count() / 2,
                ),
            ),
            (
                ("response_bytes_max", self.response_bytes_max.count()),
                (
                    "responses_bytes_per_actor_max",
                    self.responses_bytes_per_actor_max(),
                ),
            ),
            (
                (
                    "responses_bytes_per_actor_max",
                    self.responses_bytes_per_actor_max(),
                ),
                ("responses_bytes_max", self.responses_bytes_max.count()),
            ),
        ];
        let larger = pairs.into_iter().filter(|(part, whole)| part.1 > whole.1);
        larger
            .map(|((part, number), (whole, most))| {
                let what = format!("is {number}, which is more than server.{whole}, {most}");
                (format!("server.{part}"), what)
            })
            .collect()
    }
}

/// Which part of all connections one address may have where nothing is said: one in so many.
const SHARE_OF_ONE_ADDRESS: usize = 4;

/// Which part of all requests under way one actor may have where nothing is said: one in so many.
const SHARE_OF_ONE_ACTOR: usize = 4;
