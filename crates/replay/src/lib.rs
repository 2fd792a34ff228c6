//! Tapes that answer like a server, tapes as tests, and policies tried on the past.

pub mod backtest;
pub mod baseline;
pub mod call_gatherer;
mod call_index;
pub mod contract;
mod conversation;
pub mod diff;
pub mod edited_answers;
pub mod holes;
pub mod ignore_file;
mod introduction;
pub mod match_key;
pub mod nearest;
pub mod offer;
pub mod paths;
mod playing;
mod quick_answers;
pub mod recorded_call;
pub mod run;
pub mod shrink;
pub mod side;
pub mod tape_connector;
pub mod tape_diff;
pub mod tape_player;
pub mod value_patterns;

pub use baseline::{Baseline, BaselineError, BaselineSettings, BaselineStats};
pub use edited_answers::EditedAnswers;
pub use holes::Holes;
pub use ignore_file::IgnoredPlaces;
pub use match_key::MatchKey;
pub use paths::Paths;
pub use recorded_call::RecordedCall;
pub use side::Side;
pub use tape_connector::{Live, Played, TapeConnector};
pub use tape_player::{Cursor, Found, PlayerSettings, Repeat, TapePlayer};
