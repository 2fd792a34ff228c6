//! Canonical form of requests, by which a retry is recognised as the same request.

use signalbox_wire::json;
use std::borrow::Cow;

/// Maximum depth of sorting. Deeper values are taken as written, so that a client cannot choose the depth of the
/// recursion.
const MAX_DEPTH: usize = 128;
/// Maximum number of zeros appended to spell out an integer that is written with an exponent.
const MAX_ZEROS: i64 = 32;
/// Members that differ between a request and its retries.
const PER_TRY: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// Returns a canonical byte string of a request: its method and its params without `_meta`, `inputResponses` and
/// `requestState`. Members are sorted at every level, and strings and numbers stand by their value. So the same request
/// written differently gives the same bytes, and another request never does.
#[must_use]
pub fn request_digest_input(method: &str, params: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(method.len() + params.len() + 4);
    json::write_quoted(&mut out, method);
    out.push(b'\n');
    let params = if params.is_empty() { b"{}" } else { params };
    write_object(params, 0, &PER_TRY, &mut out);
    out
}

/// Appends `value` with its members sorted at every level, and strings and numbers by their value.
pub fn write_canonical(value: &[u8], out: &mut Vec<u8>) {
    write(value, 0, out);
}

fn write(value: &[u8], depth: usize, out: &mut Vec<u8>) {
    match value.get(json::skip_whitespace(value, 0)) {
        Some(b'{') if depth < MAX_DEPTH => write_object(value, depth, &[], out),
        Some(b'[') if depth < MAX_DEPTH => write_array(value, depth, out),
        Some(b'"') => match json::string(value) {
            Some(text) => json::write_quoted(out, &text),
            None => out.extend_from_slice(value),
        },
        Some(b'-' | b'0'..=b'9') => write_number(value, out),
        _ => out.extend_from_slice(value),
    }
}

fn write_object(object: &[u8], depth: usize, without: &[&str], out: &mut Vec<u8>) {
    let mut walk = json::members(object);
    let mut members: Vec<(Cow<'_, str>, &[u8])> = Vec::new();
    for member in walk.by_ref() {
        let Some(key) = json::string(member.key.of(object)) else { continue };
        if !without.contains(&&*key) {
            members.push((key, member.value.of(object)));
        }
    }
    if walk.end().is_none() {
        // Bytes that are not an object are copied, so they equal only themselves.
        out.extend_from_slice(object);
        return;
    }
    members.sort_by(|one, other| one.0.cmp(&other.0));
    out.push(b'{');
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write_quoted(out, key);
        out.push(b':');
        write(value, depth + 1, out);
    }
    out.push(b'}');
}

fn write_array(array: &[u8], depth: usize, out: &mut Vec<u8>) {
    let mut walk = json::elements(array);
    let start = out.len();
    out.push(b'[');
    for (index, span) in walk.by_ref().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(span.of(array), depth + 1, out);
    }
    out.push(b']');
    if walk.end().is_none() {
        out.truncate(start);
        out.extend_from_slice(array);
    }
}

/// Writes a number by its exact value. Rounding could make two numbers equal.
fn write_number(token: &[u8], out: &mut Vec<u8>) {
    match exact(token) {
        Some(number) => out.extend_from_slice(number.as_bytes()),
        None => out.extend_from_slice(token),
    }
}

/// Returns the number as digits without a point and without zeros at either end, then its power of ten. Integers of a
/// moderate size are spelled out. `None` if it is not a number or its exponent overflows.
fn exact(token: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(token).ok()?.trim_end_matches([' ', '\t', '\n', '\r']);
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let written = [whole, fraction].concat();
    if written.is_empty() || !written.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = written.trim_start_matches('0');
    let digits = significant.trim_end_matches('0');
    if digits.is_empty() {
        return Some(String::from("0"));
    }
    let dropped = i64::try_from(significant.len() - digits.len()).ok()?;
    let power = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(dropped)?;
    match power {
        0..=MAX_ZEROS => Some(format!("{sign}{digits}{}", "0".repeat(usize::try_from(power).ok()?))),
        _ => Some(format!("{sign}{digits}e{power}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(params: &str) -> String {
        String::from_utf8(request_digest_input("tools/call", params.as_bytes())).unwrap()
    }

    #[test]
    fn a_retry_is_the_same_request() {
        let first = digest(r#"{"name":"t","arguments":{"b":[1,{"y":2,"x":1}],"a":"é"},"_meta":{"progressToken":1}}"#);
        let again = digest(
            r#"{ "requestState":"s", "arguments": {"a":"\u00e9", "b" : [1.0, {"x":1,"y":2e0}]}, "inputResponses":{"k":{}},
                "name":"t", "_meta":{"progressToken":2} }"#,
        );
        assert_eq!(first, again);
        assert_eq!(first, "\"tools/call\"\n{\"arguments\":{\"a\":\"é\",\"b\":[1,{\"x\":1,\"y\":2}]},\"name\":\"t\"}");
        assert_eq!(digest(""), digest("{}"));
        assert_eq!(digest(""), digest(r#"{"_meta":{}}"#));
    }

    #[test]
    fn another_request_is_another() {
        let base = digest(r#"{"name":"t","arguments":{"a":[1,2]}}"#);
        for other in [
            r#"{"name":"t","arguments":{"a":[2,1]}}"#,
            r#"{"name":"t","arguments":{"a":[1,"2"]}}"#,
            r#"{"name":"t","arguments":{"a":[1,2],"_meta":{}}}"#,
            r#"{"name":"t","name":"t","arguments":{"a":[1,2]}}"#,
            r#"{"name":"u","arguments":{"a":[1,2]}}"#,
            r#"{"name":"t","arguments":{"a":[1,2]}"#,
        ] {
            assert_ne!(base, digest(other), "{other}");
        }
        assert_ne!(request_digest_input("a", b"{}"), request_digest_input("b", b"{}"));
    }

    #[test]
    fn numbers_are_compared_exactly() {
        let number = |text: &str| {
            let mut out = Vec::new();
            write_canonical(text.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        for (same, as_written) in [("100", "100"), ("1e2", "100"), ("100.0", "100"), ("1.50", "15e-1"), ("-0.0", "0")] {
            assert_eq!(number(same), as_written);
        }
        assert_ne!(number("9007199254740993"), number("9007199254740992"));
        assert_eq!(number("1e400"), number("10.0E+399"));
        assert_eq!(number("1e99999999999999999999"), "1e99999999999999999999");
        assert_eq!(number("-"), "-");
    }

    #[test]
    fn hostile_depth_ends_in_bytes_as_written() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(digest(&format!(r#"{{"arguments":{deep}}}"#)).len() >= deep.len());
    }
}
