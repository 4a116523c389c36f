//! What the API says of itself: for programs, and for people.
//!
//! Both are open, since they tell nothing of this server but its release; they go on in read-only mode, and are not audited.

pub(crate) mod openapi;
pub(crate) mod reference;
