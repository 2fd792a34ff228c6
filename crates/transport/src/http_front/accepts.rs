//! Response formats that a client accepts.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};

/// Value sent by clients that follow the specification.
const USUAL: &[u8] = b"application/json, text/event-stream";

/// Formats that the `Accept` header allows.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Accepts {
    /// Set if the client accepts `application/json`.
    pub json: bool,
    /// Set if the client accepts `text/event-stream`.
    pub sse: bool,
    /// Set if the client names `text/event-stream` first and therefore prefers it.
    pub rather_sse: bool,
}

impl Accepts {
    /// Parses the header. A client without one accepts everything.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(ACCEPT).iter().peekable();
        if let Some(usual) = Self::usual(values.peek().copied()) {
            return usual;
        }
        let mut found = Self { json: false, sse: false, rather_sse: false };
        let mut any = false;
        for value in values {
            any = true;
            let Ok(value) = value.to_str() else { continue };
            for part in value.split(',') {
                let kind = part.split(';').next().unwrap_or_default().trim();
                let all = kind == "*/*";
                let events = kind.eq_ignore_ascii_case("text/event-stream");
                found.rather_sse |= events && !found.json;
                found.json |= all || kind.eq_ignore_ascii_case("application/json") || kind == "application/*";
                found.sse |= all || events || kind == "text/*";
            }
        }
        if any { found } else { Self { json: true, sse: true, rather_sse: false } }
    }

    /// Returns the result for the first value if it is the usual one. It allows both formats in this order, so further
    /// values cannot change the result.
    pub fn usual(first: Option<&HeaderValue>) -> Option<Self> {
        let usual = first.is_some_and(|value| value.as_bytes() == USUAL);
        usual.then_some(Self { json: true, sse: true, rather_sse: false })
    }

    /// Returns `true` if the client accepts none of our formats.
    pub fn nothing(self) -> bool {
        !self.json && !self.sse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_a_client_takes() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, text.parse().unwrap());
            let accepts = Accepts::read(&headers);
            (accepts.json, accepts.sse)
        };
        assert_eq!(read("application/json, text/event-stream"), (true, true));
        assert_eq!(read("text/event-stream"), (false, true));
        assert_eq!(read("application/json;q=0.9"), (true, false));
        assert_eq!(read("*/*"), (true, true));
        assert_eq!(read("text/html"), (false, false));
        let order = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, text.parse().unwrap());
            Accepts::read(&headers).rather_sse
        };
        assert!(order("text/event-stream, application/json") && !order("application/json, text/event-stream"));
        assert!(!Accepts::read(&HeaderMap::new()).nothing());
    }
}
