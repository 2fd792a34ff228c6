//! Reads the key files with which encrypted values are shown.

use crate::failure::Failure;
use crate::output;
use signalbox_config::redact_key::read;
use signalbox_tape::redact::{Decryptor, EncryptionKey};
use std::path::PathBuf;

/// What opens the secrets of a tape; nothing where no key is given.
pub(super) fn decryptor(files: &[PathBuf]) -> Result<Option<Decryptor>, Failure> {
    let mut keys = Vec::new();
    for path in files {
        let text = read(path).map_err(|kind| Failure::File { path: path.clone(), error: kind.into() })?;
        let key = EncryptionKey::read(&text, None);
        keys.push(key.map_err(|bad| Failure::Usage(format!("{} does not contain a key: {bad}", path.display())))?);
    }
    Ok((!keys.is_empty()).then(|| Decryptor::new(keys)))
}

/// Says what could not be opened.
pub(super) fn tell(decryptor: Option<&Decryptor>) {
    if let Some((opened, left)) = decryptor.map(Decryptor::counts).filter(|(_, left)| *left > 0) {
        output::say(format_args!("decrypted {opened} values; {left} use other keys or are damaged"));
    }
}
