//! Excerpt of an oversized line: its two ends, which usually identify the request that it answers.

use crate::skip::{skip_string, skip_value, skip_whitespace};

/// Number of bytes stored of each end.
const END_BYTES: usize = 256;

/// Both ends of an oversized line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LongLine {
    head: Vec<u8>,
    tail: Vec<u8>,
    length: usize,
}

impl LongLine {
    /// Appends a part of the line.
    pub(crate) fn push(&mut self, part: &[u8]) {
        self.length += part.len();
        let missing = END_BYTES - self.head.len();
        self.head.extend_from_slice(part.get(..missing).unwrap_or(part));
        self.tail.extend_from_slice(&part[part.len().saturating_sub(END_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(END_BYTES);
        self.tail.drain(..surplus);
    }

    /// Completes the line and drops a trailing CR.
    pub(crate) fn finish(mut self) -> Self {
        if self.tail.last() == Some(&b'\r') {
            self.tail.pop();
            self.length -= 1;
            self.head.truncate(self.length);
        }
        // Make the tail independent of a CR that was dropped.
        let surplus = self.tail.len().saturating_sub(END_BYTES - 1);
        self.tail.drain(..surplus);
        self
    }

    /// Returns the number of the request that the line answers, if its ends show that it is an answer.
    #[must_use]
    pub fn answers(&self) -> Option<u64> {
        let mut at = skip_whitespace(&self.head, 0);
        let (mut id, mut is_answer) = (None, false);
        while let Some((key, value, end)) = next_member(&self.head, at) {
            match key {
                b"\"method\"" => return None,
                b"\"result\"" | b"\"error\"" => is_answer = true,
                b"\"id\"" => id = end.and_then(|end| number(&self.head[value..end])),
                _ => {}
            }
            let Some(end) = end else { break };
            at = skip_whitespace(&self.head, end);
        }
        is_answer.then(|| id.or_else(|| last_id(&self.tail))).flatten()
    }
}

/// Parses the member after the bracket or comma at `at`. Returns its key, the start of its value, and the value's end
/// if it is complete.
fn next_member(text: &[u8], at: usize) -> Option<(&[u8], usize, Option<usize>)> {
    matches!(text.get(at), Some(b'{' | b',')).then_some(())?;
    let key = skip_whitespace(text, at + 1);
    (text.get(key) == Some(&b'"')).then_some(())?;
    let end = skip_string(text, key)?;
    let colon = skip_whitespace(text, end);
    (text.get(colon) == Some(&b':')).then_some(())?;
    let value = skip_whitespace(text, colon + 1);
    // A number that ends with the excerpt may continue.
    let whole = skip_value(text, value).filter(|end| *end < text.len());
    Some((&text[key..end], value, whole))
}

/// Returns the id if it is the last member of the line's object.
fn last_id(tail: &[u8]) -> Option<u64> {
    let object = tail.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let digits = object.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, id) = object.split_at(object.len() - digits);
    let before = before.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end().strip_suffix(b"\"id\"")?;
    before.trim_ascii_end().ends_with(b",").then(|| number(id)).flatten()
}

fn number(token: &[u8]) -> Option<u64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(start: &str, end: &str) -> Option<u64> {
        let mut line = LongLine::default();
        line.push(start.as_bytes());
        line.push(&vec![b'x'; 100_000]);
        line.push(end.as_bytes());
        line.finish().answers()
    }

    #[test]
    fn the_ends_of_a_line_tell_which_request_it_answers() {
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":7,"result":{"text":""#, r#""}}"#), Some(7));
        assert_eq!(of(r#"{ "id" : 12 , "error" : {"message":""#, "\"}}\r"), Some(12));
        assert_eq!(of(r#"{"result":{"text":""#, r#""},"jsonrpc":"2.0","id":34}"#), Some(34));
        assert_eq!(of(r#"{"result":{"id":5,"text":""#, "\"} , \"id\" : 34 } \r"), Some(34));
    }

    #[test]
    fn what_is_no_answer_or_shows_no_id_answers_nothing() {
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"result":""#, r#""}}"#), None);
        assert_eq!(of(r#"{"method":"x","params":{"text":""#, r#""},"id":7}"#), None);
        assert_eq!(of(r#"{"params":{"text":""#, r#""},"id":7}"#), None);
        assert_eq!(of(r#"{"result":{"text":""#, r#""}}"#), None);
        assert_eq!(of(r#"{"result":{"text":""#, r#"","id":7"#), None);
        assert_eq!(of(r#"{"id":"a","result":{"text":""#, r#""}}"#), None);
        assert_eq!(of("", ""), None);
        assert_eq!(of("[{\"result\":1,\"id\":2}", ""), None);
    }

    #[test]
    fn how_a_line_is_cut_changes_nothing() {
        let text: Vec<u8> = (0..700_u32).map(|at| b'a' + (at % 26) as u8).chain(*b"\r").collect();
        let cut = |size: usize| {
            let mut line = LongLine::default();
            text.chunks(size).for_each(|part| line.push(part));
            line.finish()
        };
        for size in [1, 2, 255, 256, 257, 600] {
            assert_eq!(cut(size), cut(701));
        }
    }
}
