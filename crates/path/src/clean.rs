//! Scan for credentials in messages without any, which happens to almost every recorded message.

use crate::CountError;
use signalbox_secret_scan::Scanner;
use std::fmt;
use std::hint::black_box;

/// A message without credentials.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Clean {
    /// A result of 4 KiB of prose.
    Prose,
    /// A result of 4 KiB of JSON in a text.
    Json,
}

const PROSE: &str = "The quick brown fox jumps over the lazy dog, and nothing here is worth hiding. ";
const JSON: &str = r#"{\"id\":4711,\"name\":\"Invoice of March\",\"state\":\"open\",\"tags\":[\"north\",\"rain\"]},"#;

impl Clean {
    pub fn all() -> [Self; 2] {
        [Self::Prose, Self::Json]
    }

    /// Returns a message of exactly 4 KiB.
    fn message(self) -> String {
        let piece = if self == Self::Prose { PROSE } else { JSON };
        let head = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":""#;
        let mut text = format!("{head}{}", piece.repeat(4096 / piece.len() + 1));
        text.truncate(4096);
        text
    }

    /// Scans the message this many times.
    pub fn look(self, times: u32) -> Result<(), CountError> {
        let (scanner, message) = (Scanner::built_in(), self.message());
        for _ in 0..times {
            if scanner.may_hold(black_box(message.as_bytes())) {
                return Err(CountError::Unexpected { expected: "clean text", found: message });
            }
        }
        Ok(())
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Prose { "scan-clean-4k" } else { "scan-clean-4k-json" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_in_either() {
        for clean in Clean::all() {
            assert_eq!(clean.message().len(), 4096);
            clean.look(1).unwrap();
        }
    }
}
