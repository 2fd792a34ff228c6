//! Private keys in text and binary formats.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::signing_key::{KeyError, SEED_BYTES, SigningKey};
use signalbox_wire::hex::unhex;

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
const LINE: usize = 64;

/// Reason why a file is not a private key. The error reveals nothing of its content.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The format is unknown.
    #[error(
        "not a private key: PKCS#8 as PEM or DER is one, and so is a seed of 32 bytes, raw or as 64 hexadecimal digits"
    )]
    UnknownForm,
    /// The file is a public key, a certificate or a private key in another format.
    #[error("a PEM file that holds no `PRIVATE KEY`; `openssl pkcs8 -topk8 -nocrypt` makes one of other forms")]
    OtherPem,
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Parses the private key in a file.
///
/// # Errors
/// If it contains none.
pub fn read_signing_key(content: &[u8]) -> Result<SigningKey, KeyFileError> {
    // A seed can be any 32 bytes, so its length decides before its content does.
    if content.len() == SEED_BYTES {
        return Ok(SigningKey::from_seed(content)?);
    }
    let Some(text) = std::str::from_utf8(content).ok().map(str::trim) else {
        return Ok(SigningKey::from_pkcs8(content)?);
    };
    if let Some(seed) = unhex(text).filter(|seed| seed.len() == SEED_BYTES) {
        return Ok(SigningKey::from_seed(&seed)?);
    }
    if let Some((_, rest)) = text.split_once(BEGIN) {
        let (body, _) = rest.split_once(END).ok_or(KeyFileError::UnknownForm)?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| KeyFileError::UnknownForm)?;
        return Ok(SigningKey::from_pkcs8(&der)?);
    }
    Err(if text.contains("-----BEGIN ") { KeyFileError::OtherPem } else { KeyFileError::UnknownForm })
}

/// Formats a private key as PEM with PKCS#8.
///
/// # Errors
/// If the cryptographic library fails.
pub fn write_pem(key: &SigningKey) -> Result<String, KeyError> {
    let body = STANDARD.encode(key.to_pkcs8()?);
    let lines = body.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    Ok(format!("{BEGIN}\n{}\n{END}\n", lines.collect::<Vec<_>>().join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::hex::hex;

    /// The key of RFC 8032, test 2, as `openssl pkey` writes it.
    const OPENSSL: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";

    /// Proves PO-13.
    #[test]
    fn every_form_of_a_key_file_is_read() {
        let key = read_signing_key(OPENSSL.as_bytes()).unwrap();
        assert_eq!(key.verifying_key().to_hex(), PUBLIC);
        assert_eq!(write_pem(&key).unwrap(), OPENSSL);
        let seed = key.to_seed().unwrap();
        for content in [seed.to_vec(), format!("{}\n", hex(&seed)).into_bytes(), key.to_pkcs8().unwrap()] {
            assert_eq!(read_signing_key(&content).unwrap().verifying_key(), key.verifying_key());
        }
    }

    #[test]
    fn what_is_no_private_key_is_refused_without_showing_it() {
        for content in [&b""[..], b"secret", b"-----BEGIN PRIVATE KEY-----\nnothing", &[0xff; 48]] {
            let error = read_signing_key(content).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let other = read_signing_key(b"-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----");
        assert_eq!(other.unwrap_err(), KeyFileError::OtherPem);
    }
}
