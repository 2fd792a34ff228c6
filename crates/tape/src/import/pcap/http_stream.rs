//! HTTP/1 as one side of a connection sent it: a sequence of heads and bodies.

use super::tcp_streams::{Mark, Stream};
use crate::import::http_exchange::{Headers, find};
use bytes::{Bytes, BytesMut};
use httparse::Status;
use std::ops::Range;

/// Maximum length of a head, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// Maximum number of headers in a head.
const MAX_HEADERS: usize = 128;
/// Maximum length of a line with a chunk size, in bytes.
const MAX_CHUNK_LINE: usize = 1 << 10;
/// Maximum number of chunks of a body.
const MAX_CHUNKS: usize = 1_000_000;

/// Reader of one side of a connection.
pub(super) struct HttpStream<'s> {
    stream: &'s Stream,
    /// Offset of the next head.
    at: usize,
}

/// Head of a request.
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) headers: Headers,
}

/// Head of a response.
pub(super) struct AnswerHead {
    pub(super) status: u16,
    pub(super) headers: Headers,
}

/// Place of a body in a stream: several ranges if it came in chunks.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Body {
    pub(super) parts: Vec<Range<usize>>,
    /// True if the capture shows the complete body.
    pub(super) whole: bool,
}

/// Mistake that makes the rest of a stream unreadable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Unreadable {
    pub(super) packet: u64,
    pub(super) why: &'static str,
}

impl<'s> HttpStream<'s> {
    pub(super) fn new(stream: &'s Stream) -> Self {
        Self { stream, at: 0 }
    }

    pub(super) fn stream(&self) -> &'s Stream {
        self.stream
    }

    /// Returns the current offset in the stream.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns the packet that completed the bytes read so far.
    pub(super) fn mark(&self) -> Mark {
        self.stream.mark_before(self.at)
    }

    /// Returns the next request, if the capture shows its complete head.
    ///
    /// # Errors
    /// Fails if the stream is not valid HTTP/1.
    pub(super) fn request(&mut self) -> Result<Option<(RequestHead, Body)>, Unreadable> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        // A client may send an empty line after a body, which the parser skips.
        let Some(length) = self.head(request.parse(self.next()))? else { return Ok(None) };
        let head = RequestHead {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            headers: owned(request.headers),
        };
        self.at += length;
        let body = if is_chunked(&head.headers) {
            self.chunked()?
        } else {
            self.sized(self.length(&head.headers)?.unwrap_or(0))
        };
        Ok(Some((head, body)))
    }

    /// Returns the next final response to a request with this method, skipping provisional ones.
    ///
    /// # Errors
    /// Fails if the stream is not valid HTTP/1.
    pub(super) fn answer(&mut self, method: &str) -> Result<Option<(AnswerHead, Body)>, Unreadable> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut response = httparse::Response::new(&mut headers);
            let Some(length) = self.head(response.parse(self.next()))? else { return Ok(None) };
            let head = AnswerHead { status: response.code.unwrap_or_default(), headers: owned(response.headers) };
            self.at += length;
            if head.status == 101 {
                return Ok(Some((head, Body::default())));
            }
            if (100..200).contains(&head.status) {
                continue;
            }
            let body = if matches!(head.status, 204 | 304) || method == "HEAD" {
                Body { whole: true, ..Body::default() }
            } else if is_chunked(&head.headers) {
                self.chunked()?
            } else {
                let rest = self.stream.bytes.len() - self.at;
                let length = self.length(&head.headers)?;
                self.sized(length.unwrap_or(rest as u64))
            };
            return Ok(Some((head, body)));
        }
    }

    fn next(&self) -> &'s [u8] {
        let rest = self.stream.bytes.get(self.at..).unwrap_or_default();
        rest.get(..MAX_HEAD).unwrap_or(rest)
    }

    fn head(&self, parsed: httparse::Result<usize>) -> Result<Option<usize>, Unreadable> {
        match parsed {
            Ok(Status::Complete(length)) => Ok(Some(length)),
            Ok(Status::Partial) if self.next().len() < MAX_HEAD => Ok(None),
            Ok(Status::Partial) => Err(self.unreadable("a head of HTTP is too long")),
            Err(httparse::Error::TooManyHeaders) => Err(self.unreadable("a head of HTTP has too many headers")),
            Err(_) => Err(self.unreadable("this is no head of HTTP/1")),
        }
    }

    fn length(&self, headers: &Headers) -> Result<Option<u64>, Unreadable> {
        let mut found = None;
        for (_, value) in headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
            let length = value.trim().parse::<u64>().map_err(|_| self.unreadable("a Content-Length is no number"))?;
            if found.replace(length).is_some_and(|other| other != length) {
                return Err(self.unreadable("a head of HTTP has two lengths"));
            }
        }
        Ok(found)
    }

    fn sized(&mut self, length: u64) -> Body {
        let rest = self.stream.bytes.len() - self.at;
        let taken = usize::try_from(length).unwrap_or(usize::MAX).min(rest);
        let part = self.at..self.at + taken;
        self.at = part.end;
        Body { whole: taken as u64 == length, parts: Vec::from_iter((taken > 0).then_some(part)) }
    }

    fn chunked(&mut self) -> Result<Body, Unreadable> {
        let mut body = Body::default();
        loop {
            let rest = self.stream.bytes.get(self.at..).unwrap_or_default();
            let line = rest.get(..MAX_CHUNK_LINE).unwrap_or(rest);
            let (line, size) = match httparse::parse_chunk_size(line) {
                Ok(Status::Complete(found)) => found,
                Ok(Status::Partial) if rest.len() < MAX_CHUNK_LINE => return Ok(self.unfinished(body)),
                _ => return Err(self.unreadable("the size of a chunk is no number")),
            };
            self.at += line;
            if size == 0 {
                return self.trailers(body);
            }
            let chunk = self.sized(size);
            body.parts.extend(chunk.parts);
            if body.parts.len() > MAX_CHUNKS {
                return Err(self.unreadable("a body has too many chunks"));
            }
            match self.stream.bytes.get(self.at..) {
                Some([b'\r', b'\n', ..]) if chunk.whole => self.at += 2,
                Some([] | [b'\r']) => return Ok(self.unfinished(body)),
                _ => return Err(self.unreadable("a chunk is longer than its size")),
            }
        }
    }

    fn trailers(&mut self, mut body: Body) -> Result<Body, Unreadable> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        match httparse::parse_headers(self.next(), &mut headers) {
            Ok(Status::Complete((length, _))) => {
                self.at += length;
                body.whole = true;
                Ok(body)
            }
            Ok(Status::Partial) => Ok(self.unfinished(body)),
            Err(_) => Err(self.unreadable("what follows the last chunk is no header")),
        }
    }

    /// Ends the stream where the capture ends, in the middle of a body.
    fn unfinished(&mut self, body: Body) -> Body {
        self.at = self.stream.bytes.len();
        body
    }

    fn unreadable(&self, why: &'static str) -> Unreadable {
        Unreadable { packet: self.stream.mark_before(self.at + 1).packet, why }
    }
}

impl Body {
    /// Returns the length in bytes.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(ExactSizeIterator::len).sum()
    }

    /// Returns the bytes of the body, joined if it came in chunks.
    pub(super) fn bytes(&self, stream: &Stream) -> Bytes {
        let part = |part: &Range<usize>| stream.bytes.slice(part.clone());
        match &self.parts[..] {
            [only] => part(only),
            parts => {
                let mut all = BytesMut::with_capacity(self.len());
                parts.iter().for_each(|range| all.extend_from_slice(&part(range)));
                all.freeze()
            }
        }
    }
}

fn is_chunked(headers: &Headers) -> bool {
    let coding = find(headers, "transfer-encoding").and_then(|codings| codings.rsplit(',').next());
    coding.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"))
}

fn owned(headers: &[httparse::Header<'_>]) -> Headers {
    headers.iter().map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned())).collect()
}
