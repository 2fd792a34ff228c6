//! Single-pass scan of a JSON-RPC message for the members that an echo needs, without parsing it.
//!
//! Strings are skipped with `memchr`, so a large text costs one search for its closing quote. The input is assumed to
//! be valid JSON; otherwise the scan ends early, but never panics.

use memchr::memchr2;

/// Depth of the members of the message itself.
const MESSAGE: usize = 1;
/// Depth of the members of `params`.
const PARAMS: usize = 2;
/// Depth of the members of `params.arguments` and `params._meta`.
const ARGUMENTS: usize = 3;

/// Raw tokens of a message. Strings keep their escapes; `text` and `method` come without quotes.
#[derive(Debug, Default, PartialEq)]
pub struct FoundTokens<'a> {
    /// Id as written in the message, with quotes if it is a string.
    pub id: Option<&'a [u8]>,
    pub method: Option<&'a [u8]>,
    /// The tool name, `params.name`.
    pub name: Option<&'a [u8]>,
    pub text: Option<&'a [u8]>,
    /// Revision that `params._meta` names.
    pub revision: Option<&'a [u8]>,
}

/// Scans one message for the members of [`FoundTokens`].
pub fn scan(message: &[u8]) -> FoundTokens<'_> {
    let mut found = FoundTokens::default();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = message.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(end) = string_end(message, at) else {
                    break;
                };
                let key = &message[at..end];
                at = end + 1;
                if let Some(value) = value_after(message, at) {
                    at = found.member(depth, key, message, value);
                }
            }
            _ => {}
        }
    }
    found
}

impl<'a> FoundTokens<'a> {
    /// Stores the value of a wanted member and returns the position to continue at.
    fn member(&mut self, depth: usize, key: &[u8], message: &'a [u8], value: usize) -> usize {
        let slot = match (depth, key) {
            (MESSAGE, b"id") => {
                let end = token_end(message, value);
                self.id = message.get(value..end);
                return end;
            }
            (MESSAGE, b"method") => &mut self.method,
            (PARAMS, b"name") => &mut self.name,
            (ARGUMENTS, b"text") => &mut self.text,
            (ARGUMENTS, b"io.modelcontextprotocol/protocolVersion") => &mut self.revision,
            _ => return value,
        };
        if message.get(value) != Some(&b'"') {
            return value;
        }
        let end = string_end(message, value + 1).unwrap_or(message.len());
        *slot = message.get(value + 1..end);
        end + 1
    }
}

/// Returns the index of the quote that closes the string whose first byte is at `start`.
fn string_end(message: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at += memchr2(b'"', b'\\', message.get(at..)?)?;
        if message[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Returns the start of the value, if the string that ended before `at` was a key.
fn value_after(message: &[u8], at: usize) -> Option<usize> {
    let colon = skip_space(message, at);
    (message.get(colon) == Some(&b':')).then(|| skip_space(message, colon + 1))
}

fn skip_space(message: &[u8], mut at: usize) -> usize {
    while message.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns the end of a string, number or literal that starts at `start`.
fn token_end(message: &[u8], start: usize) -> usize {
    if message.get(start) == Some(&b'"') {
        return string_end(message, start + 1).map_or(message.len(), |end| end + 1);
    }
    let rest = message.get(start..).unwrap_or_default();
    let length = rest.iter().position(|byte| matches!(byte, b',' | b'}') || byte.is_ascii_whitespace());
    start + length.unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[test]
    fn finds_members_by_depth_not_by_name_alone() {
        let message = br#"{"params": {"_meta":{"id":9,"io.modelcontextprotocol/protocolVersion":"2026-07-28"},
            "name" : "echo", "arguments":{"text":"a \"id\": 3 \\"}}, "method":"tools/call","id" : "x-1" }"#;
        let found = scan(message);
        assert_eq!(found.id, Some(&br#""x-1""#[..]));
        assert_eq!(found.method, Some(&b"tools/call"[..]));
        assert_eq!(found.name, Some(&b"echo"[..]));
        assert_eq!(found.text, Some(&br#"a \"id\": 3 \\"#[..]));
        assert_eq!(found.revision, Some(&b"2026-07-28"[..]));
    }

    #[test]
    fn a_cut_message_ends_the_scan() {
        let message = br#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"arguments":{"text":"abc\""#;
        for end in 0..message.len() {
            let _ = scan(&message[..end]);
        }
        assert_eq!(scan(message).id, Some(&b"17"[..]));
        assert_eq!(scan(br#"{"id":17}"#).id, Some(&b"17"[..]));
    }
}
