use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Uri};
use signalbox_wire::id::Digits;
use std::io::IoSlice;

/// The head of a request under construction. The types of names and values exclude line breaks.
#[derive(Clone)]
pub(crate) struct RequestDraft(Vec<u8>);

impl RequestDraft {
    /// Starts with the request line and `Host`.
    pub(crate) fn new(method: &Method, line: &Uri, host: &HeaderValue) -> Self {
        let mut draft = Self(format!("{method} {line} HTTP/1.1\r\n").into_bytes());
        draft.add(&http::header::HOST, host);
        draft
    }

    /// Starts as a copy of `start`. `room` is a buffer to reuse.
    pub(crate) fn like(start: &Self, mut room: Vec<u8>) -> Self {
        room.clear();
        room.extend_from_slice(&start.0);
        Self(room)
    }

    /// Appends a header line.
    pub(crate) fn add(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.line(name.as_str(), value.as_bytes());
    }

    fn line(&mut self, name: &str, value: &[u8]) {
        let head = &mut self.0;
        head.reserve(name.len() + value.len() + 4);
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }

    /// Finishes a request with a body.
    pub(crate) fn with_body(mut self, body: Bytes) -> HttpRequest {
        self.line("content-length", Digits::of(body.len() as u64).as_ref());
        HttpRequest { body, ..self.without_body() }
    }

    /// Finishes a request without a body.
    pub(crate) fn without_body(mut self) -> HttpRequest {
        self.0.extend_from_slice(b"\r\n");
        HttpRequest { head: self.0, body: Bytes::new(), written: 0 }
    }
}

/// A request being sent. Its head may contain secrets, so it must not be printed.
pub(crate) struct HttpRequest {
    head: Vec<u8>,
    body: Bytes,
    written: usize,
}

impl HttpRequest {
    /// Returns `true` while no byte was written.
    pub(super) fn is_untouched(&self) -> bool {
        self.written == 0
    }

    /// Returns `true` once every byte was written.
    pub(super) fn is_written(&self) -> bool {
        self.written >= self.head.len() + self.body.len()
    }

    /// Returns the bytes that are not written yet.
    pub(super) fn left(&self) -> [IoSlice<'_>; 2] {
        let head = self.head.get(self.written..).unwrap_or_default();
        let body = self.body.get(self.written.saturating_sub(self.head.len())..).unwrap_or_default();
        // A vectored write that uses only the first slice would write nothing if that one were empty.
        if head.is_empty() { [IoSlice::new(body), IoSlice::new(&[])] } else { [IoSlice::new(head), IoSlice::new(body)] }
    }

    /// Records that `count` more bytes were written.
    pub(super) fn wrote(&mut self, count: usize) {
        self.written += count;
    }

    /// Returns the buffer of the head for reuse.
    pub(super) fn into_room(self) -> Vec<u8> {
        self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(request: &HttpRequest) -> String {
        request.left().iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect()
    }

    #[test]
    fn a_request_is_written_out_and_its_rest_is_known_at_every_byte() {
        let host = HeaderValue::from_static("a:1");
        let mut draft = RequestDraft::new(&Method::POST, &Uri::from_static("/mcp?x=1"), &host);
        draft.add(&http::header::ACCEPT, &HeaderValue::from_static("b"));
        let mut request = RequestDraft::like(&draft, b"old".to_vec()).with_body(Bytes::from_static(b"body"));
        let whole = "POST /mcp?x=1 HTTP/1.1\r\nhost: a:1\r\naccept: b\r\ncontent-length: 4\r\n\r\nbody";
        for written in 0..whole.len() {
            assert_eq!((text(&request).as_str(), request.is_written()), (&whole[written..], false));
            assert!(!request.left()[0].is_empty());
            assert_eq!(request.is_untouched(), written == 0);
            request.wrote(1);
        }
        assert!(request.is_written());
        assert_eq!(text(&draft.without_body()), "POST /mcp?x=1 HTTP/1.1\r\nhost: a:1\r\naccept: b\r\n\r\n");
    }
}
