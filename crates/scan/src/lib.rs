//! Finds credentials in text: one scanner for what is recorded and for what is cleaned.
//!
//! The kinds of credentials are data (`rules/*.toml`): keywords, a pattern, the issuer's page that describes the
//! format, made-up examples and counter-examples. One pass looks for the keywords of all rules at once. Where a
//! keyword goes on like a credential the pattern of its rule runs around it, in linear time, so that clean text costs little
//! but that pass.
//!
//! Text is found as it is, in JSON within strings, URL-encoded, in base64 and in hex digits. Base64 and hex are decoded
//! at most twice, and size, matches and work are bounded: where a bound is reached the scanner says that it did not see
//! everything.

mod base64_text;
mod checks;
mod continuation;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod keyword_index;
mod keywords;
#[cfg(any(test, feature = "examples"))]
pub mod made_up;
mod pair_filter;
mod percent;
mod rule;
mod scanner;

pub use rule::{BadRules, Check, Rule};
pub use scanner::{Findings, Found, MAX_FOUND, MAX_TEXT, Scanner};
