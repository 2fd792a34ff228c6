//! The canonical form: the same data always become the same bytes, in every language and on every machine.
//!
//! [`Encoder`] writes CBOR (RFC 8949) by the rules of a [`Profile`](crate::Profile), [`json`] makes it of a JSON text.
//!
//! | | `mcp-cbor/2` | `mcp-cbor/1` |
//! |---|---|---|
//! | keys of maps | by their encoded bytes (so a shorter one first) | by their text, byte by byte |
//! | integers | shortest form | shortest form |
//! | floats | shortest of 16, 32 and 64 bits that holds the value | text with 8 decimals |
//! | bytes | byte string | tag 24, byte string |
//! | moments | integer, nanoseconds since 1970 | tag 1, integer, nanoseconds since 1970 |
//!
//! Both write definite lengths, refuse NaN, infinities and a key that comes twice, and sort maps however they were filled.
//!
//! A JSON number without fraction and exponent is an integer, and is refused beyond 64 bits (-2^63 to 2^64-1); any other is the
//! nearest f64, and is refused if that is infinite, or zero though the number is not. So `1` and `1.0` differ, `1.0` and
//! `10e-1` do not. `-0` is the float `-0.0`, because no integer is.
//!
//! # Look-alikes of `mcp-cbor/1`
//!
//! That profile is not injective: a signature over it also fits other data.
//!
//! - `1.0` is written as the text `"1.00000000"`, so the number and that string are the same.
//! - Numbers that agree in 8 decimals are the same: `1e-9`, `0.0` and `4.9e-9`; `-1e-9` and `-0.0` are `"-0.00000000"`.
//! - In a `google.protobuf.Struct` every number is a double, so 1 and `"1.00000000"` are the same there too.
//! - Its tags do not mean what RFC 8949 says (24: a byte string that holds CBOR; 1: seconds). A strict reader misreads both.
//!
//! It is also the profile in which a few bytes become many: `1e308` has 318 digits. The canonical form of a message is therefore
//! refused beyond four times the bytes of the message and 64 KiB.
//!
//! Whoever can choose should take `mcp-cbor/2`.

mod encode_error;
mod encoder;
mod float;
mod read_json;

pub use encode_error::EncodeError;
pub use encoder::{ArrayEncoder, Encoder, MAX_DEPTH, MAX_GROWTH, MapEncoder, SPARE, Value};

use crate::profile::Profile;

/// The canonical bytes of a JSON text in `mcp-cbor/2`.
///
/// # Errors
/// If that is no JSON, or holds what the profile cannot tell apart from something else: a key twice, half a surrogate pair, a
/// number beyond 64 bits; or if it is nested too deeply.
pub fn json(text: &[u8]) -> Result<Vec<u8>, EncodeError> {
    json_as(Profile::Two, text)
}

/// The canonical bytes of a JSON text in a profile of choice.
///
/// # Errors
/// As [`json`].
pub fn json_as(profile: Profile, text: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = Encoder::with_capacity(profile, text.len());
    encoder.value().json(text)?;
    encoder.finish()
}

#[cfg(test)]
mod tests;
