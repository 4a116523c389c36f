//! Which requests are taken at all: how large their heads are, how many are under way, of all actors and of one, and how many
//! an actor makes.
//!
//! [`check_head`] stands around everything. [`admit`] stands right inside authentication, so that strangers take no place
//! and `/health` tells the truth of a server that is busy.

mod places;
mod rate;

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use keywright_core::authorization::Caller;

use self::{
    places::{NoPlace, RequestPlaces},
    rate::ActorRates,
};
use crate::{
    measure::{RefusedFor, request_refused},
    response::{ApiFailure, HeldBody},
};

/// Which requests are taken.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// The most authenticated requests under way at once; further ones are answered with 503.
    pub requests_max: usize,
    /// The most of them that one actor has under way at once; further ones are answered with 429.
    pub requests_per_actor_max: usize,
    /// The most requests of one actor in a second, and in one burst; further ones are answered with 429.
    pub requests_per_second_max: Option<NonZeroU32>,
    /// The longest path and query, in bytes; longer ones are answered with 414.
    pub uri_bytes_max: usize,
    /// The most header fields; more are answered with 431.
    pub header_fields_max: usize,
}

/// The places of requests, and how fast each actor asks.
pub(crate) struct Admission {
    places: RequestPlaces,
    rates: Option<ActorRates>,
}

impl Admission {
    pub(crate) fn new(limits: &RequestLimits) -> Self {
        Self {
            places: RequestPlaces::new(limits.requests_max, limits.requests_per_actor_max),
            rates: limits.requests_per_second_max.map(ActorRates::new),
        }
    }
}

/// Lets a request of a known actor pass if there is a place for it; it has the place until its answer is taken.
pub(crate) async fn admit(
    State(admission): State<Arc<Admission>>,
    request: Request,
    next: Next,
) -> Response {
    // Authentication, which stands around this, lets nobody pass without one.
    let caller = request.extensions().get::<Arc<Caller>>();
    let actor = caller.map_or("", |caller| caller.actor().as_str());
    if let Some(rates) = &admission.rates
        && let Err(retry_after) = rates.count(actor)
    {
        request_refused(RefusedFor::ActorRate);
        return not_admitted(ApiFailure::too_many_requests(retry_after));
    }
    let place = match admission.places.take(actor) {
        Ok(place) => place,
        Err(NoPlace::ActorsTaken) => {
            request_refused(RefusedFor::ActorPlaces);
            return not_admitted(ApiFailure::too_many_requests(FULL_RETRY_AFTER));
        }
        Err(NoPlace::AllTaken) => {
            request_refused(RefusedFor::Places);
            let error = "the server has as many requests under way as it takes";
            return not_admitted(ApiFailure::unavailable(error, FULL_RETRY_AFTER));
        }
    };
    let response = next.run(request).await;
    response.map(|body| Body::new(HeldBody::new(body, place)))
}

/// In the extensions of a response: its request was refused before it could touch anything, and for no other reason than
/// that there are too many. The audit trail need not be waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotAdmitted;

fn not_admitted(failure: ApiFailure) -> Response {
    let mut response = failure.into_response();
    response.extensions_mut().insert(NotAdmitted);
    response
}

/// Refuses a request with too long an address or too many header fields.
pub(crate) async fn check_head(
    State(limits): State<RequestLimits>,
    request: Request,
    next: Next,
) -> Response {
    let uri = request.uri();
    let uri_bytes = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let (status, error) = if uri_bytes > limits.uri_bytes_max {
        let max = limits.uri_bytes_max;
        let error = format!("the path and the query of a request may have at most {max} bytes");
        (StatusCode::URI_TOO_LONG, error)
    } else if request.headers().len() > limits.header_fields_max {
        let max = limits.header_fields_max;
        let error = format!("a request may have at most {max} header fields");
        (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, error)
    } else {
        return next.run(request).await;
    };
    ApiFailure::new(status, error).into_response()
}

/// Requests are short: a place is free again soon.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(1);
