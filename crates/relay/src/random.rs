//! Unguessable values: codes, request ids, tokens, session ids.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt::Write as _;

/// The system provides no random bytes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

/// Returns `N` random bytes.
///
/// # Errors
/// If the system provides none.
pub fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// Generates a request id: 128 bits as 32 hexadecimal digits.
///
/// # Errors
/// If the system provides no random bytes.
pub fn request_id() -> Result<String, NoRandomness> {
    Ok(hex(&bytes::<16>()?))
}

/// Generates a worker token: 256 bits as 43 characters.
///
/// # Errors
/// If the system provides no random bytes.
pub fn worker_token() -> Result<String, NoRandomness> {
    Ok(URL_SAFE_NO_PAD.encode(bytes::<32>()?))
}

/// Generates an MCP session id: a UUID of version 4.
///
/// # Errors
/// If the system provides no random bytes.
pub fn uuid() -> Result<String, NoRandomness> {
    let mut bytes = bytes::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex(&bytes);
    Ok([&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-"))
}

/// Formats bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_form_and_no_two_are_the_same() {
        let id = uuid().unwrap();
        assert_eq!((id.len(), &id[14..15], id.matches('-').count()), (36, "4", 4));
        assert!("89ab".contains(&id[19..20]));
        assert_eq!((request_id().unwrap().len(), worker_token().unwrap().len()), (32, 43));
        assert_ne!(request_id().unwrap(), request_id().unwrap());
    }
}
