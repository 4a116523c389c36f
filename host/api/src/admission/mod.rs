//! Admission of requests: limits on the size of their heads, on the number in progress (in total and per actor), and on the
//! request rate of each actor.
//!
//! [`refused_head`] runs before everything else. [`Admission`] runs after authentication, so that unauthenticated requests
//! take no slot, and `/health` responds even if the server is busy.

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

/// Limits on requests.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// Maximum number of authenticated requests in progress; further ones get status 503.
    pub requests_max: usize,
    /// Maximum number of requests in progress per actor; further ones get status 429.
    pub requests_per_actor_max: usize,
    /// Maximum number of requests per actor, in a second and in one burst; further ones get status 429.
    pub requests_per_second_max: Option<NonZeroU32>,
    /// Maximum length of the path and query, in bytes; longer ones get status 414.
    pub uri_bytes_max: usize,
    /// Maximum number of header fields; more get status 431.
    pub header_fields_max: usize,
}

/// The request slots, and the request rate of each actor.
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
    /// Takes a slot for a request of an actor.
    ///
    /// # Errors
    /// If no slot is free, or the actor exceeds its request rate.
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
                let error = "too many requests are in progress; try again later";
                ApiFailure::unavailable(error, FULL_RETRY_AFTER)
            }
        })
    }
}

/// The slot and the memory that a request holds until its response is sent or dropped.
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

    /// Counts the memory of a complete response, reserved or not, and makes the response hold it and the slot. If there is
    /// not enough memory, a failure replaces the response to a request that only reads. The response to a write is sent
    /// anyway, because the write is complete.
    pub(crate) fn held_by(self, response: Response, is_read: bool) -> Response {
        let bytes = response.body().size_hint().lower();
        let counted = self
            .memory
            .complete(usize::try_from(bytes).unwrap_or(usize::MAX));
        match counted {
            // The request changed nothing, and its response is dropped before the failure is sent.
            Err(refused) if is_read => {
                ApiFailure::of(refused.into(), Endpoint::Other).into_response()
            }
            _ => response.map(|body| Body::new(HeldBody::new(body, self))),
        }
    }
}

impl Held for Admitted {}

/// The retry delay if no slot is free. Requests are short, so one is free soon.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(1);
