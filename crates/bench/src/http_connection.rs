//! Client side of a keep-alive HTTP/1.1 connection, on a bare socket.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use memchr::{memchr, memmem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Initial buffer size: room for the largest benched response, so that it is read with few calls.
const BUFFER: usize = 96 * 1024;
/// Maximum size of a response.
const ANSWER_LIMIT: usize = 8 * 1024 * 1024;

/// Connection with the last response read from it.
#[derive(Debug)]
pub struct HttpConnection {
    address: SocketAddr,
    stream: TcpStream,
    input: Vec<u8>,
    /// Range of the body in `input`; a chunked body is in `joined` instead.
    body: Option<Range<usize>>,
    joined: Vec<u8>,
    closing: bool,
}

/// Head of a response, as far as the client needs it.
#[derive(Debug, Default, PartialEq)]
pub struct ResponseHead {
    pub status: u16,
    /// Session that the server opened.
    pub session: Option<String>,
    length: usize,
    chunked: bool,
    close: bool,
}

impl HttpConnection {
    /// Connects to the server.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        Ok(Self::over(address, connect(address).await?))
    }

    /// Wraps an open connection.
    pub fn over(address: SocketAddr, stream: TcpStream) -> Self {
        Self { address, stream, input: Vec::with_capacity(BUFFER), body: None, joined: Vec::new(), closing: false }
    }

    /// Returns the socket, and what was read from it after the last head.
    pub fn into_stream(self) -> (TcpStream, Vec<u8>) {
        let read = self.body.map_or_else(Vec::new, |body| self.input[body.start.min(self.input.len())..].to_vec());
        (self.stream, read)
    }

    /// Replaces the connection by a new one.
    pub async fn reopen(&mut self) -> io::Result<()> {
        self.stream = connect(self.address).await?;
        self.closing = false;
        Ok(())
    }

    /// Returns true if the server announced that it closes the connection.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Sends a request and reads the whole response.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<ResponseHead> {
        let head = self.begin(request).await?;
        let body_at = self.body.take().map_or(0, |body| body.start);
        if head.chunked {
            self.body = None;
            self.read_chunks(body_at).await?;
        } else {
            let body = body_at..body_at + head.length;
            self.fill(body.end).await?;
            self.body = Some(body);
        }
        self.closing = head.close;
        Ok(head)
    }

    /// Sends a request and reads the head of the response. The caller reads the rest.
    pub async fn begin(&mut self, request: &[u8]) -> io::Result<ResponseHead> {
        self.stream.write_all(request).await?;
        self.input.clear();
        self.joined.clear();
        let end = self.find(0, b"\r\n\r\n").await?;
        let head = ResponseHead::parse(&self.input[..end]).ok_or_else(|| malformed("head"))?;
        self.body = Some(end + 4..self.input.len());
        Ok(head)
    }

    /// Returns the body of the last response.
    pub fn body(&self) -> &[u8] {
        match &self.body {
            Some(range) => self.input.get(range.clone()).unwrap_or_default(),
            None => &self.joined,
        }
    }

    async fn read_chunks(&mut self, mut at: usize) -> io::Result<()> {
        loop {
            let line_end = self.find(at, b"\r\n").await?;
            let line = self.input[at..line_end].split(|&byte| byte == b';').next();
            let size = line
                .and_then(|digits| std::str::from_utf8(digits).ok())
                .and_then(|digits| usize::from_str_radix(digits.trim(), 16).ok())
                .filter(|&size| size <= ANSWER_LIMIT)
                .ok_or_else(|| malformed("chunk"))?;
            let data = line_end + 2;
            self.fill(data + size + 2).await?;
            if size == 0 {
                return Ok(());
            }
            self.joined.extend_from_slice(&self.input[data..data + size]);
            at = data + size + 2;
        }
    }

    /// Reads until `pattern` is in the input, at or after `from`.
    async fn find(&mut self, from: usize, pattern: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(at) = memmem::find(&self.input[from..], pattern) {
                return Ok(from + at);
            }
            self.fill(self.input.len() + 1).await?;
        }
    }

    /// Reads until the input is at least `length` bytes long.
    async fn fill(&mut self, length: usize) -> io::Result<()> {
        if length > ANSWER_LIMIT {
            return Err(malformed("length"));
        }
        while self.input.len() < length {
            if self.input.len() == self.input.capacity() {
                self.input.reserve(BUFFER);
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}

impl ResponseHead {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let status_line = lines.next()?.strip_prefix(b"HTTP/1.1 ")?;
        let mut head = Self { status: number(status_line.get(..3)?)?, ..Self::default() };
        for line in lines {
            let colon = memchr(b':', line)?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                head.length = number(value)?;
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                head.chunked = value.eq_ignore_ascii_case(b"chunked");
            } else if name.eq_ignore_ascii_case(b"connection") {
                head.close = value.eq_ignore_ascii_case(b"close");
            } else if name.eq_ignore_ascii_case(b"mcp-session-id") {
                head.session = Some(String::from_utf8_lossy(value).into_owned());
            }
        }
        Some(head)
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the answer's {what} is not understood"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::{HttpConnection, ResponseHead};

    #[test]
    fn reads_a_head() {
        let head =
            ResponseHead::parse(b"HTTP/1.1 200 OK\r\nContent-length: 12\r\nMcp-Session-Id: a:b\r\nconnection: close");
        let expected =
            ResponseHead { status: 200, session: Some("a:b".to_owned()), length: 12, chunked: false, close: true };
        assert_eq!(head, Some(expected));
        assert_eq!(ResponseHead::parse(b"nonsense"), None);
    }

    #[test]
    fn joins_chunks() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 4]).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
            for piece in answer.chunks(7) {
                stream.write_all(piece).unwrap();
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let mut connection = HttpConnection::open(address).await.unwrap();
            assert_eq!(connection.exchange(b"send").await.unwrap().status, 200);
            assert_eq!(connection.body(), b"abcde");
            assert!(connection.exchange(b"more").await.is_err());
        });
        server.join().unwrap();
    }
}
