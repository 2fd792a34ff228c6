//! Bodies of the fuzz targets. Each asserts the invariants that hold for any input.
//!
//! They are part of the crate so that ordinary tests can run them as well, on mutated seeds.

#![allow(clippy::expect_used, reason = "a fuzz target reports what does not hold by panicking")]

use bytes::{Bytes, BytesMut};

use crate::batch::Message;
use crate::endpoint::{Base, MAX_ENDPOINT, resolve};
use crate::envelope::{Envelope, Refusal};
use crate::framing::single_line;
use crate::header;
use crate::header_params;
use crate::json;
use crate::limits::Limits;
use crate::line::LineDecoder;
use crate::splice::Edits;
use crate::sse::{self, SseDecoder};

/// Fuzz target. Panics if an invariant does not hold for the input.
pub type FuzzTarget = fn(&[u8]);

/// All targets by name.
pub const TARGETS: &[(&str, FuzzTarget)] =
    &[("envelope", envelope), ("scan", scan), ("line", line), ("sse", sse), ("header", header), ("endpoint", endpoint)];

/// Any message that parses still parses to the same parts after its id or members change.
pub fn envelope(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let _ = Message::parse(bytes.clone(), 4);
    let Ok(parsed) = Envelope::parse(bytes.clone()) else {
        return;
    };
    assert_eq!(parsed.bytes(), &bytes);
    let respliced = parsed.with_id(b"\"fuzz\"");
    let again = Envelope::parse(respliced).expect("another id keeps a message valid");
    assert_eq!(again.id().expect("has the new id").token(), b"\"fuzz\"");
    assert_eq!(again.method(), parsed.method());
    assert_eq!(again.params(), parsed.params());
    assert_eq!(again.result(), parsed.result());
    assert_eq!(again.error(), parsed.error());
    if let Some(id) = parsed.id() {
        assert_eq!(again.with_id(id.token()), bytes);
    }
    let line = single_line(&bytes);
    if let Ok(line) = &line {
        assert!(memchr::memchr2(b'\r', b'\n', line).is_none());
        assert_eq!(line.len(), bytes.len());
        assert_eq!(Envelope::parse(line.clone()).expect("still a message").kind(), parsed.kind());
    }
    members(&parsed);
}

/// Parsing in one pass accepts and rejects the same input, with the same errors, as a scan followed by parsing. It
/// records the same inner members as a walk finds.
fn read_at_once(data: &[u8], limits: &Limits) {
    let bytes = Bytes::copy_from_slice(data);
    let apart = crate::scan::scan(data, limits)
        .map_err(Refusal::from)
        .and_then(|()| Envelope::parse(bytes.clone()).map_err(Refusal::from));
    let (parsed, read) = match (apart, Envelope::read(bytes, limits)) {
        (Ok(parsed), Ok(read)) => (parsed, read),
        (apart, read) => return assert_eq!(read.err(), apart.err()),
    };
    assert!(read.holds(limits) && !parsed.holds(limits));
    assert_eq!((read.kind(), read.method(), read.id()), (parsed.kind(), parsed.method(), parsed.id()));
    assert_eq!((read.params_span(), read.result_span()), (parsed.params_span(), parsed.result_span()));
    assert_eq!((read.error_span(), read.method_span()), (parsed.error_span(), parsed.method_span()));
    assert!(read.params_members().eq(parsed.params_members()) && read.result_members().eq(parsed.result_members()));
    assert!(read.params_meta().eq(parsed.params_meta()) && read.result_meta().eq(parsed.result_meta()));
}

/// A member that was set is found, and a removed one is gone.
fn members(parsed: &Envelope) {
    let bytes = parsed.bytes();
    let object = parsed.object_span();
    let mut edits = Edits::new();
    edits.set_member(bytes, object, "fuzz\"key", b"[1]");
    let set = edits.apply(bytes);
    let whole = Envelope::parse(set.clone()).expect("another member keeps a message valid");
    assert_eq!(json::member(&set, "fuzz\"key").map(|span| span.of(&set)), Some(&b"[1]"[..]));
    let mut edits = Edits::new();
    edits.remove_member(&set, whole.object_span(), "fuzz\"key");
    let removed = edits.apply(&set);
    assert_eq!(json::member(&removed, "fuzz\"key"), None);
    assert_eq!(Envelope::parse(removed).expect("still a message").kind(), parsed.kind());
}

/// The lax readers read any input that passes the strict scan to its end. Putting it on one line does not change it.
pub fn scan(data: &[u8]) {
    let limits = Limits { message: 1 << 20, depth: 32, width: 64, ..Limits::default() };
    read_at_once(data, &limits);
    let verdict = crate::scan::scan(data, &limits);
    if let Err(error) = verdict {
        assert!(error.at <= data.len());
        return;
    }
    let start = json::skip_whitespace(data, 0);
    let end = json::skip_value(data, start).expect("a valid value can be skipped");
    assert_eq!(json::skip_whitespace(data, end), data.len());
    walk(&data[start..end]);
    let line = single_line(&Bytes::copy_from_slice(data)).expect("valid strings hold no line break");
    assert_eq!(crate::scan::scan(&line, &limits), Ok(()));
}

fn walk(value: &[u8]) {
    match value.first() {
        Some(b'{') => {
            let mut members = json::members(value);
            for member in members.by_ref() {
                let key = json::string(member.key.of(value)).expect("a valid key");
                assert_eq!(json::member(value, &key), Some(member.value));
                walk(member.value.of(value));
            }
            assert_eq!(members.end(), Some(value.len()));
        }
        Some(b'[') => {
            let mut elements = json::elements(value);
            elements.by_ref().for_each(|element| walk(element.of(value)));
            assert_eq!(elements.end(), Some(value.len()));
        }
        Some(b'"') => {
            let text = json::string(value).expect("a valid string");
            assert_eq!(json::string(json::quote(&text).as_bytes()).as_deref(), Some(&*text));
        }
        _ => {}
    }
}

/// Chunk boundaries do not affect the lines, and memory stays bounded.
pub fn line(data: &[u8]) {
    const MAX: usize = 16;
    let decode = |size: usize| {
        let mut decoder = LineDecoder::new(MAX);
        let mut lines = Vec::new();
        for chunk in data.chunks(size) {
            decoder.push(chunk);
            lines.extend(std::iter::from_fn(|| decoder.next_line()));
            assert!(decoder.buffered() <= MAX + 1);
        }
        lines.extend(std::iter::from_fn(|| decoder.finish()));
        lines
    };
    let whole = decode(data.len().max(1));
    for line in whole.iter().flatten() {
        assert!(!line.contains(&b'\n') && line.len() <= MAX);
    }
    for size in chunk_sizes(data) {
        assert_eq!(decode(size), whole);
    }
}

/// Chunk boundaries do not affect the events, and encoded events decode to themselves.
pub fn sse(data: &[u8]) {
    const MAX: usize = 16;
    let decode = |text: &[u8], size: usize, max: usize| {
        let mut decoder = SseDecoder::new(max);
        let mut events = Vec::new();
        for chunk in text.chunks(size) {
            decoder.push(chunk);
            events.extend(std::iter::from_fn(|| decoder.next_event()));
        }
        events
    };
    let whole = decode(data, data.len().max(1), MAX);
    assert!(whole.iter().flatten().all(|event| event.data.len() <= MAX));
    for size in chunk_sizes(data) {
        assert_eq!(decode(data, size, MAX), whole);
    }
    if data.contains(&b'\r') {
        return;
    }
    let mut encoded = BytesMut::new();
    sse::encode_event(&mut encoded, Some("1"), None, Some(2), data);
    let decoded = decode(&encoded, encoded.len(), encoded.len());
    let [Ok(event)] = &decoded[..] else { unreachable!("one event was encoded") };
    assert_eq!((&event.data[..], event.id.as_deref(), event.retry), (data, Some("1"), Some(2)));
}

/// Returns 1, and another size that depends on the input.
fn chunk_sizes(data: &[u8]) -> [usize; 2] {
    [1, usize::from(data.first().copied().unwrap_or(2) % 13) + 2]
}

/// Values survive encoding, and headers made from arguments agree with those arguments.
pub fn header(data: &[u8]) {
    if let Ok(decoded) = header::decode_value(data) {
        let encoded = header::encode_value(&decoded);
        assert_eq!(header::decode_value(encoded.as_bytes()).as_deref(), Ok(&*decoded));
    }
    let text = String::from_utf8_lossy(data);
    let encoded = header::encode_value(&text);
    assert!(encoded.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')));
    assert_eq!(header::decode_value(encoded.as_bytes()).as_deref(), Ok(&*text));

    let Some(schema) = json::path(data, &["schema"]).map(|span| span.of(data)) else {
        return;
    };
    let Ok(headers) = header_params::param_headers(schema) else {
        return;
    };
    let arguments = json::member(data, "arguments").unwrap_or_default().of(data);
    let values = header_params::param_values(&headers, arguments);
    let lookup = |name: &str| {
        let sent = values.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        sent.map(|(_, value)| value.as_bytes()).collect()
    };
    if let Err(error) = header_params::check_params(&headers, arguments, lookup) {
        assert_eq!(error.problem, header::HeaderProblem::NotRepeatable);
    }
}

/// Any accepted event resolves to a path and query of the same origin, which resolve to themselves.
pub fn endpoint(data: &[u8]) {
    let base = Base { host: "127.0.0.1", port: 9000, path: "/a/sse", secure: false };
    let Ok(line) = resolve(base, data) else {
        return;
    };
    assert!(line.starts_with('/') && line.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#'));
    let path = line.split('?').next().unwrap_or_default();
    assert!(path.split('/').all(|segment| segment != "." && segment != ".."));
    // Two slashes at its start would be read as the start of a host, so put it after one.
    let whole = format!("http://127.0.0.1:9000{line}");
    if whole.len() <= MAX_ENDPOINT {
        assert_eq!(resolve(base, whole.as_bytes()), Ok(line));
    }
}

/// Runs every target on each seed, and then on `runs` mutated inputs (`MCP_TEST_FUZZ_RUNS` overrides the number). An
/// input is a seed with up to six mutations, among them the insertion of a significant token. The inputs are
/// deterministic, so that a failure can be reproduced.
pub fn run_mutated(targets: &[(&str, FuzzTarget)], seeds: &[Vec<u8>], pieces: &[&[u8]], runs: usize) {
    let asked = std::env::var("MCP_TEST_FUZZ_RUNS").ok().and_then(|text| text.parse().ok());
    let runs = asked.unwrap_or(runs);
    let mut random = Xorshift(0x9E37_79B9_7F4A_7C15);
    for (_, target) in targets {
        seeds.iter().for_each(|seed| target(seed));
        for seed in seeds.iter().cycle().take(runs) {
            let mut input = seed.clone();
            for _ in 0..=random.below(6) {
                random.mutate(&mut input, pieces);
            }
            target(&input);
        }
    }
}

/// Deterministic random number generator.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    fn mutate(&mut self, input: &mut Vec<u8>, pieces: &[&[u8]]) {
        let at = self.below(input.len() + 1);
        match self.below(5) {
            0 => input.truncate(at),
            1 if at < input.len() => {
                let byte = self.below(256) as u8;
                input.splice(at..=at, [byte]);
            }
            2 => {
                let end = at + self.below(input.len() - at).min(8);
                input.drain(at..end);
            }
            3 => {
                let end = at + self.below(input.len() - at).min(40);
                input.extend_from_within(at..end);
                input.get_mut(at..).unwrap_or_default().rotate_right(end - at);
            }
            _ => {
                let piece = pieces.get(self.below(pieces.len())).copied().unwrap_or_default();
                input.splice(at..at, piece.iter().copied());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":[1,2.5e3,null]}}}"#,
        "{ \"jsonrpc\" : \"2.0\",\r\n\"result\":{\"x\":\"\\u00e9\\ud83d\\ude00\"}, \"id\":\"a\\\"b\" }",
        r#"{"jsonrpc":"2.0","error":{"code":-1,"message":""},"id":null}"#,
        r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":7,"method":"b","params":[]}]"#,
        "a\nbb\r\n\n0123456789abcdef\r\n0123456789abcdef0\nlast",
        ": c\n\nevent: e\nid: 1\nretry: 10\ndata: x\ndata: y\r\n\r\ndata: 0123456789abcdefg\n\ndata: z\r\r",
        "\u{feff}data: 0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\n\nid\n\n",
        r#"{"schema":{"properties":{"a":{"type":"integer","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"C"}}}}},"arguments":{"a":42.0,"b":{"c":"é"}}}"#,
        "=?base64?SGVsbG8=?=",
        "http://127.0.0.1:9000/b/../message?sessionId=1",
    ];

    /// Pieces that matter to some parser, to be put anywhere.
    const PIECES: &[&[u8]] = &[
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\\u",
        b"\\ud800",
        b"null",
        b"1e999",
        b"\"id\":2",
        b"data:",
        b" ",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\0",
        b"=?base64?",
        b"?=",
        b"\"x-mcp-header\":\"A\"",
        b"-0",
        b"01",
        b"http:",
        b"//",
        b"127.0.0.1:9000",
        b"/../",
        b"/.",
        b"?",
        b"#",
        b"@",
    ];

    /// How many mutated inputs each target gets, unless `MCP_TEST_FUZZ_RUNS` says otherwise.
    const RUNS: usize = 20_000;

    /// Proves S-7, S-59 and S-66.
    #[test]
    fn all_targets_hold_on_seeds_and_mutations() {
        let seeds: Vec<_> = SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect();
        run_mutated(TARGETS, &seeds, PIECES, RUNS);
    }
}
