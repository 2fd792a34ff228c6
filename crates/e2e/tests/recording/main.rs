//! Tapes: how they are recorded, read, exported and replayed, by gateways and by `wrap`.

mod log_lines;
mod replay;
mod replay_control;
mod replay_servers;
mod tape_bounds;
mod tape_exports;
mod tapes;
mod wrap_bytes;
mod wrap_control;
mod wrap_rules;
mod wrap_tape;
