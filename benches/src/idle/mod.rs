//! What children cost a host while nothing happens.

pub(crate) mod children;
mod load;
pub(crate) mod terminals;
