//! Which requests are taken at all: how large their heads are, how many are under way, of all actors and of one, and how many
//! an actor makes.
//!
//! [`refused_head`] comes before everything. [`Admission`] comes after authentication, so that strangers take no place and
//! `/health` tells the truth of a server that is busy.

mod head;
mod places;
mod rate;

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http_body::Body as _;
use keywright_core::response_memory::ResponseReservation;

pub(crate) use self::{head::refused_head, places::RequestPlace};
use self::{
    places::{NoPlace, RequestPlaces},
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

impl Admission {
    /// Takes a place for a request of an actor.
    ///
    /// # Errors
    /// If there is none for it, or the actor makes too many requests.
    pub(crate) fn admit(&self, actor: &str) -> Result<RequestPlace, ApiFailure> {
        if let Some(rates) = &self.rates
            && let Err(retry_after) = rates.count(actor)
        {
            request_refused(RefusedFor::ActorRate);
            return Err(ApiFailure::too_many_requests(retry_after));
        }
        self.places.take(actor).map_err(|no_place| match no_place {
            NoPlace::ActorsTaken => {
                request_refused(RefusedFor::ActorPlaces);
                ApiFailure::too_many_requests(FULL_RETRY_AFTER)
            }
            NoPlace::AllTaken => {
                request_refused(RefusedFor::Places);
                let error = "the server has as many requests under way as it takes";
                ApiFailure::unavailable(error, FULL_RETRY_AFTER)
            }
        })
    }
}

/// What a request holds until its response is taken.
pub(crate) struct Admitted {
    _place: RequestPlace,
    memory: Arc<ResponseReservation>,
}

impl Admitted {
    pub(crate) fn new(place: RequestPlace, memory: Arc<ResponseReservation>) -> Self {
        Self {
            _place: place,
            memory,
        }
    }

    /// Counts the memory of a complete response, whether or not some was reserved for it, and has the response hold it and
    /// the place. A response to a request that only reads is replaced by a failure if there is no memory for it; a write
    /// has been done, so it is answered.
    pub(crate) fn held_by(self, response: Response, is_read: bool) -> Response {
        let bytes = response.body().size_hint().lower();
        let counted = self
            .memory
            .complete(usize::try_from(bytes).unwrap_or(usize::MAX));
        match counted {
            // Nothing was changed, and the response is gone before this one leaves.
            Err(refused) if is_read => {
                ApiFailure::of(refused.into(), Endpoint::Other).into_response()
            }
            _ => response.map(|body| Body::new(HeldBody::new(body, self))),
        }
    }
}

impl Held for Admitted {}

/// Requests are short: a place is free again soon.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(1);
