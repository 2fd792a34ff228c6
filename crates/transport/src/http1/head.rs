//! Parses response heads. One pass extracts what the connection needs; other headers are parsed on request.

use super::framing::{Framing, MalformedBody};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use httparse::{EMPTY_HEADER, Header, ParserConfig, Response, Status};
use std::mem::MaybeUninit;
use std::time::Duration;

/// Maximum size of a response head, in bytes.
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// Maximum number of header lines in a response.
const MAX_LINES: usize = 100;

/// Value of `Content-Type`, as far as callers distinguish it.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) enum ContentKind {
    /// `application/json`, or no type.
    #[default]
    Json,
    Events,
    /// Any other content type.
    Other,
}

impl ContentKind {
    fn of_value(value: &[u8]) -> Self {
        let end = memchr::memchr(b';', value).unwrap_or(value.len());
        let kind = value.get(..end).unwrap_or(value).trim_ascii();
        if kind.eq_ignore_ascii_case(b"application/json") {
            Self::Json
        } else if kind.eq_ignore_ascii_case(b"text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}

/// The head of a response.
pub(crate) struct Head {
    /// Status of the response.
    pub status: StatusCode,
    /// Kind of the content.
    pub content: ContentKind,
    bytes: Bytes,
}

impl Head {
    /// Returns the first value with this name.
    pub(crate) fn get(&self, name: &HeaderName) -> Option<HeaderValue> {
        let mut lines = [EMPTY_HEADER; MAX_LINES];
        let mut response = Response::new(&mut lines);
        response.parse(&self.bytes).ok()?;
        let found = response.headers.iter().find(|line| line.name.eq_ignore_ascii_case(name.as_str()))?;
        HeaderValue::from_bytes(found.value).ok()
    }

    /// Returns all values with this name that are valid text, in order.
    pub(crate) fn texts(&self, name: &HeaderName) -> Vec<String> {
        let mut lines = [EMPTY_HEADER; MAX_LINES];
        let mut response = Response::new(&mut lines);
        if response.parse(&self.bytes).is_err() {
            return Vec::new();
        }
        let found = response.headers.iter().filter(|line| line.name.eq_ignore_ascii_case(name.as_str()));
        found.filter_map(|line| std::str::from_utf8(line.value).ok().map(str::to_owned)).collect()
    }
}

/// Connection handling that a head asks for.
pub(crate) struct ResponseHandling {
    /// Framing of the body.
    pub framing: Framing,
    /// Set if the connection can be reused after the body.
    pub reusable: bool,
    /// Keep-alive timeout of the server, if it sent one.
    pub idle_timeout: Option<Duration>,
}

/// Splits the head off the received bytes, if it is complete.
pub(crate) fn take(received: &mut BytesMut) -> Result<Option<(Head, ResponseHandling)>, MalformedBody> {
    let mut lines = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_LINES];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, received, &mut lines);
    let length = match parsed {
        Ok(Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(Status::Partial) if received.len() <= MAX_HEAD => return Ok(None),
        Ok(_) => return Err(MalformedBody("a head that is too large")),
        Err(httparse::Error::TooManyHeaders) => return Err(MalformedBody("too many headers")),
        Err(_) => return Err(MalformedBody("a head that cannot be parsed")),
    };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(MalformedBody("an invalid status code"))?;
    let headers = ConnectionHeaders::read(response.headers)?;
    let content = headers.content;
    let handling = headers.handling(status, response.version == Some(1))?;
    Ok(Some((Head { status, content, bytes: received.split_to(length).freeze() }, handling)))
}

/// Returns `true` if a head may end in these bytes, of which the first `seen` were searched before.
pub(crate) fn may_end(bytes: &[u8], seen: usize) -> bool {
    let from = seen.saturating_sub(3);
    let fresh = bytes.get(from..).unwrap_or_default();
    memchr::memchr_iter(b'\n', fresh).any(|at| {
        let rest = fresh.get(at + 1..).unwrap_or_default();
        rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
    })
}

/// Header lines that matter to the connection.
#[derive(Default)]
struct ConnectionHeaders {
    content: ContentKind,
    typed: bool,
    length: Option<u64>,
    /// Set if there is a transfer coding; `true` if the last one is `chunked`.
    coded: Option<bool>,
    /// Set if `chunked` is one of the codings.
    chunked: bool,
    close: bool,
    keep_alive: bool,
    idle_timeout: Option<Duration>,
}

impl ConnectionHeaders {
    fn read(lines: &[Header<'_>]) -> Result<Self, MalformedBody> {
        let mut headers = Self::default();
        for line in lines {
            let is = |name: &str| line.name.eq_ignore_ascii_case(name);
            match line.name.len() {
                10 if is("connection") => headers.connection(line.value),
                10 if is("keep-alive") => {
                    headers.idle_timeout = std::str::from_utf8(line.value).ok().and_then(keep_alive)
                }
                12 if is("content-type") && !headers.typed => {
                    headers.typed = true;
                    headers.content = ContentKind::of_value(line.value);
                }
                14 if is("content-length") => headers.length(line.value)?,
                17 if is("transfer-encoding") => headers.codings(line.value)?,
                _ => {}
            }
        }
        Ok(headers)
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Parses codings. Over several lines, the last coding of the last line is the outermost one.
    fn codings(&mut self, value: &[u8]) -> Result<(), MalformedBody> {
        let codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|coding| !coding.is_empty());
        let mut any = false;
        for coding in codings {
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            if chunked && self.chunked {
                return Err(MalformedBody("a body that is chunked twice"));
            }
            self.chunked |= chunked;
            self.coded = Some(chunked);
            any = true;
        }
        if any { Ok(()) } else { Err(MalformedBody("an empty transfer-encoding")) }
    }

    /// Parses lengths. Two different lengths are refused, because they leave open where the next response begins.
    fn length(&mut self, value: &[u8]) -> Result<(), MalformedBody> {
        let bad = MalformedBody("an invalid content-length");
        for one in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let digits = !one.is_empty() && one.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(one).ok().filter(|_| digits);
            let length = text.and_then(|text| text.parse().ok()).ok_or(bad)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(bad);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    fn handling(self, status: StatusCode, modern: bool) -> Result<ResponseHandling, MalformedBody> {
        let bodyless = status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let mut reusable = !self.close && (modern || self.keep_alive) && status != StatusCode::SWITCHING_PROTOCOLS;
        let framing = match (self.coded, self.length) {
            _ if bodyless => {
                // The announced body may still arrive and would be taken for the next response. Only 304 may announce
                // the length that its body would have had.
                let announced = self.coded.is_some() || self.length.is_some_and(|length| length > 0);
                reusable &= !announced || status == StatusCode::NOT_MODIFIED;
                Framing::Done
            }
            (Some(_), _) if !modern => return Err(MalformedBody("a transfer coding in HTTP/1.0")),
            (Some(true), length) => {
                // The two may disagree on the end of the body, and a proxy on the way may have used the length.
                reusable &= length.is_none();
                Framing::chunked()
            }
            (None, Some(0)) => Framing::Done,
            (None, Some(length)) => Framing::Length(length),
            (Some(false), _) | (None, None) => {
                reusable = false;
                Framing::UntilClose
            }
        };
        Ok(ResponseHandling { framing, reusable, idle_timeout: self.idle_timeout })
    }
}

/// Parses the time in a value like `timeout=5, max=100`.
fn keep_alive(value: &str) -> Option<Duration> {
    let seconds = value.split(',').find_map(|part| {
        let (name, seconds) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| seconds.trim().parse().ok()).flatten()
    })?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{LOCATION, SERVER};
    use proptest::prelude::*;

    fn read(head: &str) -> Result<Option<(Head, ResponseHandling)>, MalformedBody> {
        let mut received = BytesMut::from(head);
        let taken = take(&mut received);
        if let Ok(Some(_)) = taken {
            assert_eq!(received, "rest");
        }
        taken
    }

    #[test]
    fn the_keep_alive_time_is_read() {
        let check = |value, seconds: Option<u64>| {
            assert_eq!(keep_alive(value), seconds.map(Duration::from_secs));
        };
        check("timeout=5", Some(5));
        check("max=3, Timeout = 7", Some(7));
        check("max=3", None);
        check("timeout=x", None);
    }

    #[test]
    fn a_head_tells_where_its_body_ends_and_whether_another_request_may_follow() {
        let check = |head: &str, framing: Framing, kept: bool| {
            let (_, handling) = read(&format!("{head}\r\n\r\nrest")).unwrap().unwrap();
            assert_eq!((handling.framing, handling.reusable), (framing, kept), "{head}");
        };
        check("HTTP/1.1 200 OK\r\nContent-Length: 5", Framing::Length(5), true);
        check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nContent-Length: 5, 5", Framing::Length(5), true);
        check("HTTP/1.1 200 OK\r\ncontent-length: 0", Framing::Done, true);
        check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: x, Close", Framing::Length(5), false);
        check("HTTP/1.0 200 OK\r\ncontent-length: 5", Framing::Length(5), false);
        check("HTTP/1.0 200 OK\r\ncontent-length: 5\r\nconnection: Keep-Alive", Framing::Length(5), true);
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked", Framing::chunked(), true);
        check("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5", Framing::chunked(), false);
        check("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, gzip", Framing::UntilClose, false);
        check("HTTP/1.1 200 OK", Framing::UntilClose, false);
        check("HTTP/1.1 204 No\r\ncontent-length: 0", Framing::Done, true);
        check("HTTP/1.1 204 No\r\ncontent-length: 5", Framing::Done, false);
        check("HTTP/1.1 304 No\r\ntransfer-encoding: chunked", Framing::Done, true);
        check("HTTP/1.1 101 Other", Framing::Done, false);
    }

    #[test]
    fn what_leaves_the_end_open_is_refused() {
        for head in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6",
            "HTTP/1.1 200 OK\r\ncontent-length: +5",
            "HTTP/1.1 200 OK\r\ncontent-length: ",
            "HTTP/1.1 200 OK\r\ncontent-length: 5 6",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999",
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked",
            "HTTP/2 200 OK",
            "HTTP/1.1 99 OK",
            "HTTP/1.1 200 OK\r\na b: c",
            "SSH-2.0-x",
        ] {
            assert!(read(&format!("{head}\r\n\r\nrest")).is_err(), "{head}");
        }
        assert!(read(&format!("HTTP/1.1 200 OK\r\n{}\r\nrest", "a: b\r\n".repeat(MAX_LINES + 1))).is_err());
        assert!(read(&format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\nrest", "b".repeat(MAX_HEAD))).is_err());
        assert!(read(&format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(MAX_HEAD))).is_err());
        assert!(matches!(read("HTTP/1.1 200 OK\r\na: b\r\n"), Ok(None)));
    }

    proptest! {
        #[test]
        fn no_bytes_harm_it_and_what_is_taken_is_off_the_front(
            start in prop_oneof![Just("HTTP/1.1 200 OK\r\n"), Just("HTTP/1.0 404 \r\n"), Just("")],
            lines in prop::collection::vec("(content-length|transfer-encoding|connection|x): [ -~]{0,20}", 0..4),
            rest in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let whole = [format!("{start}{}\r\n\r\n", lines.join("\r\n")).as_bytes(), &rest].concat();
            let mut received = BytesMut::from(&whole[..]);
            if let Ok(Some(_)) = take(&mut received) {
                prop_assert!(whole.ends_with(&received) && received.len() < whole.len());
            } else {
                prop_assert_eq!(&received[..], &whole[..]);
            }
        }
    }

    #[test]
    fn headers_are_found_under_any_case() {
        let text = "HTTP/1.1 200 OK\r\nLocation: a\r\nlocation: b\r\nCONTENT-TYPE: Text/Event-Stream; x\r\n\r\nrest";
        let (head, _) = read(text).unwrap().unwrap();
        assert_eq!((head.status, head.content), (StatusCode::OK, ContentKind::Events));
        assert_eq!((head.get(&LOCATION).unwrap(), head.get(&SERVER)), (HeaderValue::from_static("a"), None));
    }
}
