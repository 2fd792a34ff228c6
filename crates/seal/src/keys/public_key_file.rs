//! Public keys in text and binary formats.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::signing_key::KeyError;
use crate::verifying_key::{PUBLIC_KEY_BYTES, VerifyingKey};
use signalbox_wire::hex::unhex;

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";
/// Prefix of an Ed25519 key in a `SubjectPublicKeyInfo` (RFC 8410), before its 32 bytes.
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Reason why a file is not a public key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PublicKeyError {
    /// The format is unknown.
    #[error(
        "not a public Ed25519 key: 64 hexadecimal digits are one, and so are 32 bytes and a PEM or DER file as \
         `openssl pkey -pubout` writes it"
    )]
    UnknownForm,
    /// The file is a private key, which must not be shared.
    #[error("a private key; give away its public half only (`signalbox seal keys export`)")]
    Private,
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Parses the public key in a file or a text.
///
/// # Errors
/// If it contains none.
pub fn read_verifying_key(content: &[u8]) -> Result<VerifyingKey, PublicKeyError> {
    if content.len() == PUBLIC_KEY_BYTES {
        return Ok(VerifyingKey::from_bytes(content)?);
    }
    if let Some(key) = content.strip_prefix(&SPKI) {
        return Ok(VerifyingKey::from_bytes(key)?);
    }
    let text = std::str::from_utf8(content).map_err(|_| PublicKeyError::UnknownForm)?.trim();
    if text.contains("PRIVATE KEY-----") {
        return Err(PublicKeyError::Private);
    }
    if let Some(bytes) = unhex(text).filter(|bytes| bytes.len() == PUBLIC_KEY_BYTES) {
        return Ok(VerifyingKey::from_bytes(&bytes)?);
    }
    let body = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).map(|(body, _)| body);
    let body: String = body.ok_or(PublicKeyError::UnknownForm)?.split_whitespace().collect();
    let der = STANDARD.decode(body).map_err(|_| PublicKeyError::UnknownForm)?;
    let key = der.strip_prefix(&SPKI).ok_or(PublicKeyError::UnknownForm)?;
    Ok(VerifyingKey::from_bytes(key)?)
}

/// Formats a public key as PEM, which other programs read.
#[must_use]
pub fn write_public_pem(key: &VerifyingKey) -> String {
    let der = [&SPKI[..], key.as_bytes()].concat();
    format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(der))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by `openssl pkey -pubout` of the key of RFC 8032, section 7.1, test 2.
    const OPENSSL: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n-----END PUBLIC KEY-----\n";
    const HEX: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";

    #[test]
    fn every_form_of_a_public_key_is_read() {
        let key = read_verifying_key(OPENSSL.as_bytes()).unwrap();
        assert_eq!(key.to_hex(), HEX);
        assert_eq!(write_public_pem(&key), OPENSSL);
        let der = [&SPKI[..], key.as_bytes()].concat();
        for content in [HEX.as_bytes(), format!(" {HEX}\n").as_bytes(), key.as_bytes(), &der] {
            assert_eq!(read_verifying_key(content).unwrap(), key);
        }
    }

    #[test]
    fn other_files_are_refused() {
        for content in [&b""[..], b"3d40", &[0xff; 40], b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"] {
            assert_eq!(read_verifying_key(content), Err(PublicKeyError::UnknownForm));
        }
        let private = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----";
        assert_eq!(read_verifying_key(private), Err(PublicKeyError::Private));
    }
}
