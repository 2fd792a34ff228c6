//! Tapes that answer like a server, tapes as tests, and policies tried on the past.

pub mod contract;
pub mod diff;
pub mod ignore_file;
pub mod match_key;
pub mod paths;
pub mod tape_diff;

pub use match_key::MatchKey;
pub use paths::Paths;
