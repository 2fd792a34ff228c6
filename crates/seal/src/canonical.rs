//! The canonical form: the same data always becomes the same bytes, in every language and on every machine.
//!
//! [`Encoder`] writes CBOR (RFC 8949) by the rules of a [`Profile`](crate::Profile); [`json`] converts a JSON text.
//!
//! | | `mcp-cbor/2` | `mcp-cbor/1` |
//! |---|---|---|
//! | keys of maps | by their encoded bytes (so a shorter one first) | by their text, byte by byte |
//! | integers | shortest form | shortest form |
//! | floats | shortest of 16, 32 and 64 bits that holds the value | text with 8 decimals |
//! | bytes | byte string | tag 24, byte string |
//! | moments | integer, nanoseconds since 1970 | tag 1, integer, nanoseconds since 1970 |
//!
//! Both profiles write definite lengths, reject NaN, infinities and repeated keys, and sort maps regardless of
//! insertion order.
//!
//! A JSON number without fraction and exponent is an integer, and is rejected beyond 64 bits (-2^63 to 2^64-1). Any
//! other number becomes the nearest f64, and is rejected if that is infinite, or zero although the number is not. So
//! `1` and `1.0` differ, `1.0` and `10e-1` do not. `-0` is the float `-0.0`, because integers have no negative zero.
//!
//! # Look-alikes of `mcp-cbor/1`
//!
//! `mcp-cbor/1` is not injective: a signature over it may also match other data.
//!
//! - `1.0` is written as the text `"1.00000000"`, so the number equals that string.
//! - Numbers that agree in 8 decimals are equal: `1e-9`, `0.0` and `4.9e-9`; `-1e-9` and `-0.0` are `"-0.00000000"`.
//! - In a `google.protobuf.Struct` every number is a double, so 1 and `"1.00000000"` are equal there too.
//! - Its tags do not mean what RFC 8949 defines (24: a byte string that contains CBOR; 1: seconds). A strict reader
//!   misinterprets both.
//!
//! Its canonical form can also be much larger than the input: `1e308` has 318 digits. The canonical form of a message
//! is therefore limited to four times the size of the message plus 64 KiB.
//!
//! Use `mcp-cbor/2` where you have the choice.

mod encode_error;
mod encoder;
mod float;
mod read_json;

pub use encode_error::EncodeError;
pub use encoder::{ArrayEncoder, Encoder, MAX_DEPTH, MAX_GROWTH, MapEncoder, SPARE, Value};

use crate::profile::Profile;

/// Converts a JSON text to canonical bytes in `mcp-cbor/2`.
///
/// # Errors
/// If the text is not JSON, is nested too deeply, or contains data that is ambiguous: a repeated key, half a surrogate
/// pair, a number beyond 64 bits.
pub fn json(text: &[u8]) -> Result<Vec<u8>, EncodeError> {
    json_as(Profile::Two, text)
}

/// Converts a JSON text to canonical bytes in the given profile.
///
/// # Errors
/// The same as [`json`].
pub fn json_as(profile: Profile, text: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::with_capacity(profile, text.len());
    encoder.value().json(text)?;
    encoder.finish()
}

#[cfg(test)]
mod tests;
