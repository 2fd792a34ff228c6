//! Redacts query parameters in the URLs that URL questions send users to. A parameter is redacted if its name is that
//! of a member to redact.

use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Span, json, method};

/// Percent-encoded replacement for a redacted value.
const REPLACEMENT: &str = "%5Bredacted%5D";

/// Returns the message with the values of these parameters redacted, or `None` if it contains none.
pub(super) fn redact(message: &Bytes, names: &[Box<str>]) -> Option<Bytes> {
    if names.is_empty() {
        return None;
    }
    let message = Envelope::parse(message.clone()).ok()?;
    let mut edits = Edits::new();
    for place in urls(&message) {
        let url = json::string(place.of(message.bytes()));
        if let Some(redacted) = url.and_then(|url| without_values(&url, names)) {
            edits.replace(place, json::quote(&redacted));
        }
    }
    (!edits.is_empty()).then(|| edits.apply(message.bytes()))
}

/// Returns the spans of the URLs in a question, or in an error that lists the questions to answer first.
fn urls(message: &Envelope) -> Vec<Span> {
    let bytes = message.bytes();
    let url_of = |whole: Span| json::member(whole.of(bytes), "url").map(|span| span.shift(whole.start));
    if message.method() == Some(method::ELICITATION_CREATE) {
        return message.params_span().and_then(url_of).into_iter().collect();
    }
    let listed = message.error_span().and_then(|error| {
        let listed = json::path(error.of(bytes), &["data", "elicitations"])?;
        Some(listed.shift(error.start))
    });
    let Some(listed) = listed else { return Vec::new() };
    json::elements(listed.of(bytes)).filter_map(|item| url_of(item.shift(listed.start))).collect()
}

/// Replaces the values of these parameters in the query and in the fragment of a URL.
fn without_values(url: &str, names: &[Box<str>]) -> Option<String> {
    let start = url.find(['?', '#'])?;
    let mut redacted = url[..start].to_owned();
    for part in url[start..].split_inclusive(['?', '#', '&', ';']) {
        let (pair, end) = part.split_at(part.trim_end_matches(['?', '#', '&', ';']).len());
        match pair.split_once('=').filter(|(name, _)| names.contains(&plain(&decode(name)))) {
            Some((name, _)) => redacted.extend([name, "=", REPLACEMENT]),
            None => redacted.push_str(pair),
        }
        redacted.push_str(end);
    }
    (redacted != url).then_some(redacted)
}

/// Normalises a name for comparison with members to redact: lower case, without separators between words.
pub(super) fn plain(name: &str) -> Box<str> {
    let letters = name.chars().filter(|letter| !matches!(letter, '-' | '_' | ' '));
    letters.map(|letter| letter.to_ascii_lowercase()).collect::<String>().into()
}

/// Decodes percent escapes and plus signs.
fn decode(name: &str) -> String {
    let mut decoded = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escape = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (escape, first) {
            (Some(byte), _) => decoded.push(byte),
            (None, b'+') => decoded.push(b' '),
            (None, byte) => decoded.push(*byte),
        }
        rest = if escape.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_url_lose_their_values_however_their_names_are_written() {
        let names = [plain("iban"), plain("card-number")];
        for (url, expected) in [
            ("https://x/?iban=DE02", "https://x/?iban=%5Bredacted%5D"),
            ("https://x/?a=1&IBAN=DE02&b=2", "https://x/?a=1&IBAN=%5Bredacted%5D&b=2"),
            ("https://x/?a=1;ib%61n=DE02#i", "https://x/?a=1;ib%61n=%5Bredacted%5D#i"),
            ("https://x/#iban=DE02&Card_Number=4", "https://x/#iban=%5Bredacted%5D&Card_Number=%5Bredacted%5D"),
            ("https://x/?card+number=4?iban=5", "https://x/?card+number=%5Bredacted%5D?iban=%5Bredacted%5D"),
        ] {
            assert_eq!(without_values(url, &names).as_deref(), Some(expected), "{url}");
        }
        for url in ["https://x/iban=DE02", "https://x/?a=iban", "https://x/?%=1&%6=2&%zz=3", "https://x/?ibans=1"] {
            assert_eq!(without_values(url, &names), None, "{url}");
        }
    }

    #[test]
    fn questions_and_errors_that_list_them_are_looked_at() {
        let names = [plain("iban")];
        let redacted = |message: &'static str| {
            let redacted = redact(&Bytes::from_static(message.as_bytes()), &names)?;
            Some(String::from_utf8(redacted.to_vec()).unwrap().contains("DE02"))
        };
        let question = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x/?iban=DE02","elicitationId":"e"}}"#;
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://x/?a=1"},{"mode":"url","url":"https://x/?iban=DE02"}]}}}"#;
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"url":"https://x/?iban=DE02"}}"#;
        assert_eq!((redacted(question), redacted(error), redacted(answer)), (Some(false), Some(false), None));
    }
}
