//! Parses JSON text for validation.

use serde_json::Value;

/// Parses JSON text. A number beyond the range of a double, which `serde_json` refuses, becomes ±1e308.
pub(super) fn parse_json(text: &[u8]) -> Result<Value, serde_json::Error> {
    match serde_json::from_slice(text) {
        Err(error) if error.is_syntax() => match clamp_numbers(text) {
            Some(clamped) => serde_json::from_slice(&clamped),
            None => Err(error),
        },
        result => result,
    }
}

/// Counts the values and names of JSON text at most, without parsing it: each follows a bracket or a separator.
pub(super) fn count_values(text: &[u8]) -> usize {
    let mut count = 1;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' | b':' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Replaces numbers beyond the range of a double. Returns `None` if there are none.
fn clamp_numbers(text: &[u8]) -> Option<Vec<u8>> {
    // Not the largest double: its many digits parse ten times as slowly.
    const LARGEST: &[u8] = b"1e308";
    let mut out = Vec::with_capacity(text.len());
    let mut changed = false;
    let mut rest = text;
    while let [byte, ..] = rest {
        let token = match byte {
            b'"' => string_length(rest),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                rest.iter().take_while(is_part).count()
            }
            _ => 1,
        };
        let (part, after) = rest.split_at_checked(token)?;
        let number = (*byte != b'"').then(|| std::str::from_utf8(part).ok()?.parse::<f64>().ok()).flatten();
        match number.filter(|number| number.is_infinite()) {
            Some(number) => {
                changed = true;
                let sign = if number < 0.0 { b"-".as_slice() } else { b"" };
                out.extend_from_slice(sign);
                out.extend_from_slice(LARGEST);
            }
            None => out.extend_from_slice(part),
        }
        rest = after;
    }
    changed.then_some(out)
}

/// Returns the length of the string literal that the text begins with, with its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_beyond_a_double_are_clamped() {
        assert_eq!(
            parse_json(br#"{"1e400":[1e400,-1e999,"\"1e400"]}"#).unwrap(),
            json!({"1e400": [1e308, -1e308, "\"1e400"]})
        );
        assert_eq!(parse_json(b"12345678901234567890123").unwrap(), json!(1.234_567_890_123_456_8e22));
        for bad in ["", "1e400,", "[1e400", "-", "01", "\"", "{1e400}", "1e400 x"] {
            assert!(parse_json(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_are_counted_from_above() {
        for (text, least) in [("1", 1), ("[]", 1), ("[1,2]", 3), (r#"{"a,b":[1,"\",["]}"#, 5)] {
            assert!((least..=least + 1).contains(&count_values(text.as_bytes())), "{text}");
        }
    }
}
