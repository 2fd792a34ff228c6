//! Recognises in the arguments of one tool what another tool returned.
//!
//! A policy can say that nothing which tools of one class return may go into tools of another class. A [`FlowTracker`]
//! holds fingerprints of what was returned, and [`FlowTracker::trace`] looks for them in an argument, as it is written
//! and in the encodings of [`TextEncoding`](crate::TextEncoding).
//!
//! Texts are compared without the differences that reformatting makes: rows of white space count as one space, ASCII
//! letters as lower case, typographic quotes and dashes as plain ones, and invisible characters not at all. In this
//! form, two kinds of agreement are found:
//!
//! - **Runs.** Every common run of [`FlowLimits::min_chars`] characters is found if it says something: names of JSON
//!   members, dates, common phrases, punctuation and repeated characters do not. A run that is up to a fifth shorter
//!   may be found too.
//! - **Values.** E-mail addresses, numbers of [`FlowLimits::min_digits`] digits and tokens of
//!   [`FlowLimits::min_value`] characters are found however short they are, if they stand alone in the text that was
//!   returned. Dates, round numbers, and names of files and paths are none: a name in a listing goes into the next call
//!   all the time. A path of `min_chars` characters is a run like any other; exclude the arguments of a call before its
//!   result is recorded, so that the folder that was asked for does not count as returned.
//!
//! What a tool returned counts as returned by it unless the caller had written it in arguments before. Where a tool
//! adds a few letters to what the caller wrote, as a listing does to a folder, the whole does not count either.
//!
//! A tracker stores no text, only hashes under a secret key. They do not show what was returned, but an attacker who
//! reads both from memory can confirm a guess of it.

mod common_text;
mod distinctive_value;
mod fingerprint_table;
mod flow_key;
mod flow_limits;
mod flow_match;
mod flow_source;
mod flow_tracker;
mod gram_hasher;
mod gram_scan;
mod information_window;
mod number_values;
mod plain_form;
mod recorded_calls;
mod result_fingerprints;
#[cfg(test)]
mod tests;
mod value_scan;

pub use flow_key::FlowKey;
pub use flow_limits::FlowLimits;
pub use flow_match::FlowMatch;
pub use flow_source::FlowSource;
pub use flow_tracker::FlowTracker;
