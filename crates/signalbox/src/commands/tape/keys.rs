//! Reads the key files that decrypt values of a tape.

use crate::failure::Failure;
use crate::output;
use signalbox_config::redact_key::read;
use signalbox_tape::redact::{Decryptor, EncryptionKey};
use std::path::PathBuf;

/// Returns a decryptor with these keys, or `None` if there are no key files.
pub(super) fn decryptor(files: &[PathBuf]) -> Result<Option<Decryptor>, Failure> {
    let mut keys = Vec::new();
    for path in files {
        let text = read(path).map_err(|kind| Failure::File { path: path.clone(), error: kind.into() })?;
        let key = EncryptionKey::read(&text, None);
        keys.push(key.map_err(|bad| Failure::Usage(format!("{} does not contain a key: {bad}", path.display())))?);
    }
    Ok((!keys.is_empty()).then(|| Decryptor::new(keys)))
}

/// Reports the values that could not be decrypted.
pub(super) fn tell(decryptor: Option<&Decryptor>) {
    if let Some((opened, left)) = decryptor.map(Decryptor::counts).filter(|(_, left)| *left > 0) {
        output::say(format_args!("decrypted {opened} values; {left} use other keys or are damaged"));
    }
}
