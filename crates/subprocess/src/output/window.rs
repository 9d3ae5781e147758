//! The retained window.
