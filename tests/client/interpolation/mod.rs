//! The verb of interpolation.

mod interpolate;
