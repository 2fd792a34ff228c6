//! Tapes that answer like a server, tapes as tests, and policies tried on the past.

pub mod backtest;
pub mod match_key;
pub mod paths;

pub use match_key::MatchKey;
pub use paths::Paths;
