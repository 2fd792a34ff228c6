//! Bodies of the fuzz targets in /fuzz.

use bytes::Bytes;

use crate::canonical;
use crate::message::{MessageLimits, deserialize_request};
use crate::prepare::prepare_request_for_signing;
use crate::profile::Profile;
use crate::transcode::request_to_json;

/// Parses any bytes as a request. Nothing panics, and a request that is written and read again has the same signed
/// bytes.
#[expect(clippy::expect_used, reason = "a fuzz target reports by panicking")]
pub fn protobuf(data: &[u8]) {
    let Ok(request) = deserialize_request(data) else { return };
    let _ = request_to_json(&request);
    let _ = crate::prepare::verify_request(&request);
    let Ok(prepared) = prepare_request_for_signing(&request) else { return };
    let limits = MessageLimits::default();
    let Ok(bytes) = limits.serialize_request(&request) else { return };
    let again = limits.deserialize_request(Bytes::from(bytes)).expect("what was written can be read");
    assert_eq!(prepare_request_for_signing(&again).expect("it could be prepared before"), prepared);
    let _ = limits.deserialize_response(Bytes::copy_from_slice(data));
}

/// Parses any bytes as JSON. Both profiles accept the same texts.
pub fn canonical_json(data: &[u8]) {
    let (one, two) = (canonical::json_as(Profile::One, data), canonical::json_as(Profile::Two, data));
    assert_eq!(one.is_ok(), two.is_ok());
    let _ = crate::signed_json::signature_of(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_run() {
        for data in [&b""[..], b"\xff\xff", b"{\"a\":[1,2.5]}", b"\x1a\x02\x08\x01\x92\x01\x01x", b"1e400"] {
            protobuf(data);
            canonical_json(data);
        }
    }
}
