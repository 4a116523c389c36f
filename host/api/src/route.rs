//! What the router is made of: routes, each of which says what its caller needs.

use std::sync::Arc;

use axum::{
    Router,
    handler::Handler,
    http::Method,
    routing::{self, MethodRouter},
};
use keywright_core::permission::Operation;

use crate::{Api, description::Described};

/// One method on one path, with what its caller needs and what the description says of it.
pub struct Route {
    method: Method,
    path: &'static str,
    access: Access,
    handler: MethodRouter<Arc<Api>>,
    describe: fn() -> Described,
}

/// What the caller of a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing at all.
    Open,
    /// An identity, and no permission. What else it takes, the route itself says.
    Identity,
    /// An identity with a permission for this operation on what the request names, or else what the route lists is only
    /// that on which there is one. A request may need other permissions besides.
    Permission(Operation),
}

impl Route {
    /// GET, and with it HEAD.
    pub(crate) fn get<H, T>(
        path: &'static str,
        access: Access,
        handler: H,
        describe: fn() -> Described,
    ) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new(Method::GET, path, access, routing::get(handler), describe)
    }

    /// PUT.
    pub(crate) fn put<H, T>(
        path: &'static str,
        access: Access,
        handler: H,
        describe: fn() -> Described,
    ) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new(Method::PUT, path, access, routing::put(handler), describe)
    }

    /// POST.
    pub(crate) fn post<H, T>(
        path: &'static str,
        access: Access,
        handler: H,
        describe: fn() -> Described,
    ) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new(Method::POST, path, access, routing::post(handler), describe)
    }

    /// PATCH.
    pub(crate) fn patch<H, T>(
        path: &'static str,
        access: Access,
        handler: H,
        describe: fn() -> Described,
    ) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new(
            Method::PATCH,
            path,
            access,
            routing::patch(handler),
            describe,
        )
    }

    /// DELETE.
    pub(crate) fn delete<H, T>(
        path: &'static str,
        access: Access,
        handler: H,
        describe: fn() -> Described,
    ) -> Self
    where
        H: Handler<T, Arc<Api>>,
        T: 'static,
    {
        Self::new(
            Method::DELETE,
            path,
            access,
            routing::delete(handler),
            describe,
        )
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path; its variable segments stand in braces.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// What its caller needs.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// What the API's description says of it.
    pub(crate) fn described(&self) -> Described {
        (self.describe)()
    }

    fn new(
        method: Method,
        path: &'static str,
        access: Access,
        handler: MethodRouter<Arc<Api>>,
        describe: fn() -> Described,
    ) -> Self {
        Self {
            method,
            path,
            access,
            handler,
            describe,
        }
    }
}

/// A router that leads along these routes, and nowhere else.
pub(crate) fn mounted(routes: impl IntoIterator<Item = Route>) -> Router<Arc<Api>> {
    routes.into_iter().fold(Router::new(), |router, route| {
        router.route(route.path, route.handler)
    })
}
