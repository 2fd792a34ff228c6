//! Reads the key that encrypts secrets on tapes, from a file or from the configuration itself.

use super::error::{ConfigError, Problem};
use super::read::Table;
use super::tls::file;
use signalbox_tape::redact::{BadKey, EncryptionKey};
use std::io::Read as _;
use std::path::Path;

/// Maximum number of bytes read from a key file. A key is 64 letters.
const LARGEST: u64 = 4096;

/// Reads the key in the table `record.redact`.
pub(super) fn key(table: &Table<'_>) -> Result<EncryptionKey, ConfigError> {
    let needs = "a `key_file`, or a `key` such as \"${SIGNALBOX_TAPE_KEY}\"";
    let (name, text) = match (file(table, "key_file")?, table.text("key")?) {
        (Some(_), Some(_)) => {
            return Err(table.key_error("key", Problem::BadHiddenValue("either `key` or `key_file`, not both")));
        }
        (None, None) => return Err(table.key_error("action", Problem::Needs(needs))),
        (Some(path), None) => {
            let read = read(&path).map_err(|kind| table.key_error("key_file", Problem::Unreadable(kind)))?;
            ("key_file", read)
        }
        (None, Some(text)) => ("key", text.value),
    };
    let id = table.text("key_id")?.map(|id| id.value);
    EncryptionKey::read(&text, id.as_deref()).map_err(|bad| match bad {
        BadKey::Text => table.key_error(
            name,
            Problem::BadHiddenValue(
                "a key of 32 bytes, as 64 hex digits or as base64; `openssl rand -hex 32` makes one",
            ),
        ),
        BadKey::Id => table.key_error("key_id", Problem::BadHiddenValue("1 to 64 letters, digits, `_`, `.` and `-`")),
    })
}

/// Reads the text of a file with a key.
pub fn read(path: &Path) -> Result<String, std::io::ErrorKind> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| error.kind())?;
    file.take(LARGEST).read_to_string(&mut text).map_err(|error| error.kind())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use crate::{Config, Overrides};
    use std::path::Path;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn read(folder: &Path, redact: &str) -> Result<Vec<String>, String> {
        let overrides = Overrides { data_dir: Some("/nowhere".into()), ..Overrides::default() };
        let env = |name: &str| (name == "TAPE_KEY").then(|| HEX.to_owned());
        let text = format!("[record.redact]\ndefaults = false\nkeys = ['pin']\n{redact}\n");
        let loaded = Config::parse(&folder.join("signalbox.toml"), &text, &env, &overrides);
        loaded.map(|loaded| loaded.config.record.redaction.describe()).map_err(|error| {
            let error = error.to_string();
            assert!(!error.contains("0a0b"), "a key is never shown: {error}");
            error
        })
    }

    /// Proves SO-10.
    #[test]
    fn a_key_comes_from_a_file_or_from_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tape.key"), format!("{HEX}\n")).unwrap();
        std::fs::write(folder.path().join("short.key"), "00ff0a0b").unwrap();
        let read = |redact: &str| read(folder.path(), redact);
        let by_name = ["key pin: encrypt ops".to_owned()];
        assert_eq!(read("action = 'encrypt'\nkey_file = 'tape.key'\nkey_id = 'ops'").unwrap(), by_name);
        assert_eq!(read("action = 'encrypt'\nkey = '${TAPE_KEY}'\nkey_id = 'ops'").unwrap(), by_name);
        let fingerprint = read("action = 'encrypt'\nkey = '${TAPE_KEY}'").unwrap();
        assert!(fingerprint[0].len() == "key pin: encrypt ".len() + 8, "{fingerprint:?}");
        for (redact, told) in [
            ("action = 'encrypt'", "record.redact.action: needs a `key_file`, or a `key`"),
            ("action = 'encrypt'\nkey_file = 'no.key'", "record.redact.key_file: the file cannot be read"),
            ("action = 'encrypt'\nkey_file = 'short.key'", "record.redact.key_file: expected a key of 32 bytes"),
            ("action = 'encrypt'\nkey = '0a0b0c'", "record.redact.key: expected a key of 32 bytes"),
            (
                "action = 'encrypt'\nkey = '${TAPE_KEY}'\nkey_id = 'a b'",
                "record.redact.key_id: expected 1 to 64 letters",
            ),
            ("action = 'encrypt'\nkey = '${TAPE_KEY}'\nkey_file = 'x'", "either `key` or `key_file`"),
            ("action = 'encrypt'\nkey = '${NO_KEY}'", "`NO_KEY` is not set"),
        ] {
            let error = read(redact).unwrap_err();
            assert!(error.contains(told), "{redact}: {error}");
        }
    }
}
