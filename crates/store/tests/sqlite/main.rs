//! What only a file can do: be damaged, locked, full, of another version, or left by a process that was killed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "all of this is a test, its helpers too")]

mod damage;
mod file;
mod killing;
#[path = "../suite/make.rs"]
#[allow(dead_code, reason = "the suite uses all of it")]
mod make;
mod room;
