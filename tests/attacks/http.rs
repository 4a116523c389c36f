//! Malformed HTTP/1.1 and HTTP/2, and callers that overreach.
