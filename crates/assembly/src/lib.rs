//! Builds a running gateway from a configuration: its interceptors, recording, logs and traces, and the reloads that
//! follow the configuration file. `serve`, `stdio`, `tools` and `doctor` all start a gateway here.

mod admin_files;
pub mod anchor_book;
mod answer_redaction;
pub mod approval_notifier;
pub mod assemble;
pub mod auditing;
pub mod auth_file;
pub mod authentication;
pub mod authorization;
pub mod backend_auth;
mod baseline;
mod builtin_backend;
pub mod call_metrics;
pub mod data_dir;
mod govern_files;
pub mod govern_parts;
pub mod grants;
pub mod key_file;
pub mod live_feed;
pub mod live_line;
pub mod logging;
pub mod metric_family;
pub mod name_check;
mod openid;
#[cfg(feature = "otel")]
pub mod otel;
pub mod pattern_check;
pub mod permission_backtest;
pub mod permission_trial;
mod permission_validator;
pub mod permissions;
pub mod process_memory;
mod protected_resource;
pub mod recording;
mod relaying;
pub mod reload;
mod remote_backend;
pub mod seal;
pub mod seal_folder;
pub mod signals;
mod signing_keys;
mod spent_budgets;
pub mod tape_backend;
pub mod tape_to_file;
mod tool_labels;
pub mod user_file;
