//! Parses requests.
//!
//! The path is normalized first (`path.rs`). A handler parses the query (`query.rs`), receives the body (`body.rs`) and takes
//! the fields of the body (`object.rs`). Each mistake has its own error, because its status can depend on the endpoint
//! (`response::Endpoint`).

mod body;
mod object;
mod path;
mod query;

pub(crate) use body::{
    has_media_type, parse_json_body, read_body, read_json_body, read_optional_json_body,
};
pub(crate) use object::{BodyError, RequestObject, compact, parse_document, truncated_name};
pub(crate) use path::{OriginalTarget, with_normal_path};
pub(crate) use query::{QueryError, QueryParameters};
