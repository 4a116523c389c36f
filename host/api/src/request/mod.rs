//! Parses requests.

mod body;
mod compact;
mod object;
mod path;
mod query;

pub(crate) use body::{has_media_type, read_body, read_json_body, read_optional_json_body};
pub(crate) use compact::compact;
pub(crate) use object::{BodyRefused, RequestObject, parse_document, truncated_name};
pub(crate) use path::{FormlessTarget, with_normal_path};
pub(crate) use query::{QueryParameters, QueryRefused};
