//! Which requests are taken at all: how large their heads are, how many are under way, of all actors and of one, and how many
//! an actor makes.
//!
//! [`check_head`] stands around everything. [`admit`] stands right inside authentication, so that strangers take no place
//! and `/health` tells the truth of a server that is busy.

mod head;
mod places;
mod rate;

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http_body::Body as _;
use keywright_core::{
    authorization::Caller,
    response_memory::{NoResponseMemory, ResponseReservation},
};

pub(crate) use self::head::check_head;
use self::{
    places::{NoPlace, RequestPlace, RequestPlaces},
    rate::ActorRates,
};
use crate::{
    measure::{RefusedFor, request_refused},
    response::{ApiFailure, Endpoint, Held, HeldBody},
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
    let held = Admitted {
        _place: place,
        memory: request.extensions().get().cloned(),
    };
    let is_read = request.method().is_safe();
    let response = next.run(request).await;
    match held.complete(&response, is_read) {
        Ok(()) => response.map(|body| Body::new(HeldBody::new(body, held))),
        // Nothing was changed, and the response is gone before this one leaves.
        Err(refused) => ApiFailure::of(refused.into(), Endpoint::Other).into_response(),
    }
}

/// What a request holds until its response is taken.
struct Admitted {
    _place: RequestPlace,
    memory: Option<Arc<ResponseReservation>>,
}

impl Admitted {
    /// Counts the memory of a complete response, whether or not some was reserved for it.
    ///
    /// # Errors
    /// When there is no memory for the response to a request that only reads. A write has been done, so it is answered.
    fn complete(&self, response: &Response, is_read: bool) -> Result<(), NoResponseMemory> {
        let Some(memory) = &self.memory else {
            return Ok(());
        };
        let bytes = response.body().size_hint().lower();
        let counted = memory.complete(usize::try_from(bytes).unwrap_or(usize::MAX));
        if is_read { counted } else { Ok(()) }
    }
}

impl Held for Admitted {}

/// In the extensions of a response: its request was refused before it could touch anything, and for no other reason than
/// that there are too many. The audit trail need not be waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotAdmitted;

fn not_admitted(failure: ApiFailure) -> Response {
    let mut response = failure.into_response();
    response.extensions_mut().insert(NotAdmitted);
    response
}

/// Requests are short: a place is free again soon.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(1);
