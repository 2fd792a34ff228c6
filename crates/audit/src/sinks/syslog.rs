//! The syslog sink (RFC 5424): over UDP, over TCP with octet counting (RFC 6587), or to a local socket.

use super::{JournalRecord, Sink, SinkError};
use crate::event::RiskLevel;
use crate::record::AuditRecord;
use signalbox_wire::timestamp;
use std::io::{self, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

/// Syslog facility for audit messages.
const FACILITY: u8 = 13;
/// Timeout of connecting and of each write.
const WITHIN: Duration = Duration::from_secs(5);
/// Number of bytes sent of a record that is too long for a datagram.
const CUT: usize = 8 << 10;

/// Address of a syslog server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SyslogAddress {
    /// Datagrams to a host and port.
    Udp(String),
    /// A stream to a host and port.
    Tcp(String),
    /// Datagrams to a socket of this machine.
    Local(PathBuf),
}

/// Error of a text that is not a syslog address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected `udp://host:514`, `tcp://host:514` or `unix:///dev/log`")]
pub struct BadSyslogAddress;

impl std::str::FromStr for SyslogAddress {
    type Err = BadSyslogAddress;

    fn from_str(text: &str) -> Result<Self, BadSyslogAddress> {
        let host = |text: &str| {
            let good =
                text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
            if good && !text.contains('/') { Ok(text.to_owned()) } else { Err(BadSyslogAddress) }
        };
        match text.split_once("://") {
            Some(("udp", rest)) => host(rest).map(Self::Udp),
            Some(("tcp", rest)) => host(rest).map(Self::Tcp),
            Some(("unix", rest)) if rest.starts_with('/') => Ok(Self::Local(rest.into())),
            _ => Err(BadSyslogAddress),
        }
    }
}

enum Way {
    Udp(UdpSocket),
    Tcp(TcpStream),
    Local(UnixDatagram),
}

/// Sends records to syslog.
pub struct SyslogSink {
    address: SyslogAddress,
    host: String,
    way: Option<Way>,
    /// Last record that was sent, if a later one of its batch failed.
    sent: u64,
}

impl std::fmt::Debug for SyslogSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SyslogSink").field(&self.address).finish()
    }
}

impl SyslogSink {
    /// Creates a sink for this address, with this host name in its messages.
    #[must_use]
    pub fn new(address: SyslogAddress, host: &str) -> Self {
        let plain: String = host.chars().filter(char::is_ascii_graphic).take(255).collect();
        let host = if plain.is_empty() { "-".to_owned() } else { plain };
        Self { address, host, way: None, sent: 0 }
    }

    fn connect(address: &SyslogAddress) -> io::Result<Way> {
        let first = |host: &str| {
            host.to_socket_addrs()?.next().ok_or_else(|| io::Error::other(format!("{host} has no address")))
        };
        match address {
            SyslogAddress::Udp(host) => {
                let there = first(host)?;
                let socket = UdpSocket::bind(if there.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
                socket.connect(there)?;
                Ok(Way::Udp(socket))
            }
            SyslogAddress::Tcp(host) => {
                let stream = TcpStream::connect_timeout(&first(host)?, WITHIN)?;
                stream.set_write_timeout(Some(WITHIN))?;
                Ok(Way::Tcp(stream))
            }
            SyslogAddress::Local(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(WITHIN))?;
                Ok(Way::Local(socket))
            }
        }
    }

    fn send(&mut self, message: &str) -> io::Result<()> {
        let way = match &mut self.way {
            Some(way) => way,
            none => none.insert(Self::connect(&self.address)?),
        };
        match way {
            Way::Tcp(stream) => stream.write_all(format!("{} {message}", message.len()).as_bytes()),
            Way::Udp(socket) => whole_or_cut(message, |bytes| socket.send(bytes)),
            Way::Local(socket) => whole_or_cut(message, |bytes| socket.send(bytes)),
        }
    }
}

/// Sends a datagram. Truncates one that is too long, because it would never be accepted.
fn whole_or_cut(message: &str, send: impl Fn(&[u8]) -> io::Result<usize>) -> io::Result<()> {
    match send(message.as_bytes()) {
        Err(error) if error.raw_os_error() == Some(MESSAGE_TOO_LONG) => {
            let end = (0..=CUT.min(message.len())).rfind(|end| message.is_char_boundary(*end)).unwrap_or(0);
            send(format!("{} [cut]", &message[..end]).as_bytes()).map(drop)
        }
        sent => sent.map(drop),
    }
}

/// The errno value of `EMSGSIZE`.
const MESSAGE_TOO_LONG: i32 = if cfg!(target_os = "linux") { 90 } else { 40 };

impl Sink for SyslogSink {
    fn name(&self) -> &'static str {
        "syslog"
    }

    fn write(&mut self, lines: &[JournalRecord]) -> Result<(), SinkError> {
        for line in lines {
            if line.seq <= self.sent {
                continue;
            }
            let message = message(line, &self.host);
            if let Err(error) = self.send(&message) {
                self.way = None;
                return Err(error.into());
            }
            self.sent = line.seq;
        }
        Ok(())
    }
}

/// Formats a record as a syslog message.
fn message(line: &JournalRecord, host: &str) -> String {
    let record = AuditRecord::read(&line.text).ok();
    let severity = match record.as_ref().map(|record| record.risk) {
        Some(RiskLevel::Low) => 6,
        Some(RiskLevel::Medium) | None => 5,
        Some(RiskLevel::High) => 4,
        Some(RiskLevel::Critical) => 2,
    };
    let at = record.as_ref().map_or_else(|| "-".to_owned(), |record| timestamp::rfc3339_millis(record.at));
    let kind = record.and_then(|record| record.event_type).map_or("gap", |kind| kind.word());
    let priority = FACILITY * 8 + severity;
    format!("<{priority}>1 {at} {host} signalbox {} {kind} - {}", std::process::id(), line.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::ChainPlace;
    use crate::event::{AuditEvent, EventType};
    use std::io::Read as _;
    use std::net::TcpListener;

    fn lines(count: usize) -> Vec<JournalRecord> {
        let mut place = ChainPlace::start("c");
        let mut line = |_| {
            let mut text = String::new();
            place.append(&AuditEvent::own(1_700_000_000_000, EventType::RecordsLost, "{}", RiskLevel::High), &mut text);
            JournalRecord { seq: place.seq, text: text.trim_end().to_owned() }
        };
        (0..count).map(&mut line).collect()
    }

    #[test]
    fn addresses_are_read_and_others_refused() {
        assert_eq!("udp://h:514".parse(), Ok(SyslogAddress::Udp("h:514".to_owned())));
        assert_eq!("tcp://[::1]:601".parse(), Ok(SyslogAddress::Tcp("[::1]:601".to_owned())));
        assert_eq!("unix:///dev/log".parse(), Ok(SyslogAddress::Local("/dev/log".into())));
        for bad in ["", "h:514", "udp://h", "udp://:1", "tcp://h:1/x", "unix://log", "http://h:1"] {
            assert_eq!(bad.parse::<SyslogAddress>(), Err(BadSyslogAddress), "{bad}");
        }
    }

    /// RFC 5424 over a local socket and over UDP.
    #[test]
    fn a_record_is_a_message_of_syslog() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let socket = UnixDatagram::bind(&path).unwrap();
        let all = lines(1);
        SyslogSink::new(SyslogAddress::Local(path), "box").write(&all).unwrap();
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).unwrap();
        let expected = format!(
            "<108>1 2023-11-14T22:13:20.000Z box signalbox {} records_lost - {}",
            std::process::id(),
            all[0].text
        );
        assert_eq!(std::str::from_utf8(&buffer[..length]).unwrap(), expected);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = SyslogAddress::Udp(socket.local_addr().unwrap().to_string());
        SyslogSink::new(address, "box").write(&all).unwrap();
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(std::str::from_utf8(&buffer[..length]).unwrap(), expected);
    }

    /// RFC 6587 over TCP; a lost connection is made again, and what was sent is not sent again.
    #[test]
    fn over_tcp_each_message_has_its_length_before_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sink = SyslogSink::new(SyslogAddress::Tcp(listener.local_addr().unwrap().to_string()), "box");
        let all = lines(2);
        sink.write(&all).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        drop(sink);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let [one, two] = [message(&all[0], "box"), message(&all[1], "box")];
        assert_eq!(text, format!("{} {one}{} {two}", one.len(), two.len()));
    }

    /// A datagram that no socket takes whole is cut, since it would hold up all that come after it.
    #[test]
    fn a_record_that_is_too_long_for_a_datagram_is_cut() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut long = lines(1);
        long[0].text = "x".repeat(70_000);
        let address = SyslogAddress::Udp(socket.local_addr().unwrap().to_string());
        SyslogSink::new(address, "box").write(&long).unwrap();
        let mut buffer = [0; 70_000];
        let length = socket.recv(&mut buffer).unwrap();
        assert!(length < 9_000 && buffer[..length].ends_with(b" [cut]"));
    }
}
