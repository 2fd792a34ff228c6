//! Finds credentials in text: one scanner for recordings and for the cleaning of messages.
//!
//! The kinds of credentials are data (`rules/*.toml`): keywords, a pattern, the issuer's page that describes the
//! format, made-up examples and counter-examples. One pass searches for the keywords of all rules at once. If the text
//! after a keyword resembles a credential, the pattern of its rule runs around it, in linear time. Clean text therefore
//! costs little more than that pass.
//!
//! The scanner reads plain text, JSON within strings, URL encoding, base64 and hex digits. Base64 and hex are decoded
//! at most twice, and size, matches and work are bounded: when a bound is reached, the findings say that they may be
//! incomplete.

mod base64_text;
mod checks;
mod continuation;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hidden;
mod keyword_index;
mod keywords;
#[cfg(any(test, feature = "examples"))]
pub mod made_up;
mod pair_filter;
mod percent;
mod rule;
mod scanner;
mod told;

pub use rule::{BadRules, Check, Rule};
pub use scanner::{CredentialMatch, Findings, MAX_FOUND, MAX_TEXT, Scanner};
