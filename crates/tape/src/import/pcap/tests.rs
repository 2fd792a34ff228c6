//! Captures that the tests write packet by packet, and one that tcpdump made.

use crate::import::tests::{entries, exchanges, in_order, session, text};
use crate::import::{ImportError, ImportFormat, LeftOut, read};
use bytes::Bytes;
use etherparse::PacketBuilder;
use signalbox_engine::record::Entry;

/// In seconds since 1970.
const BEGAN: u64 = 1_790_000_000;
const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 50_000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);

/// Writes a capture in which each packet comes a millisecond after the last.
struct Capture {
    bytes: Vec<u8>,
    packets: u32,
    link: Link,
}

#[derive(Copy, Clone, PartialEq)]
enum Link {
    Ethernet,
    Cooked,
    Cooked2,
    Raw,
    Null,
    Vlan6,
}

/// One connection that is written to a capture.
#[derive(Clone)]
struct Dialogue {
    port: u16,
    /// The next sequence number of the client and of the server.
    next: [u32; 2],
}

impl Capture {
    fn new(link: Link) -> Self {
        let number: u32 = match link {
            Link::Ethernet | Link::Vlan6 => 1,
            Link::Cooked => 113,
            Link::Cooked2 => 276,
            Link::Raw => 101,
            Link::Null => 0,
        };
        let mut bytes = [0xa1b2_c3d4_u32.to_le_bytes(), [2, 0, 4, 0], [0; 4], [0; 4], [0, 0, 4, 0]].concat();
        bytes.extend(number.to_le_bytes());
        Self { bytes, packets: 0, link }
    }

    fn packet(&mut self, port: u16, from_server: bool, sequence: u32, flags: &str, payload: &[u8]) {
        let mut ends = [(CLIENT.0, port), SERVER];
        ends.rotate_left(usize::from(from_server));
        let [(from, from_port), (to, to_port)] = ends;
        let mut frame = Vec::new();
        macro_rules! write {
            ($builder:expr) => {{
                let mut tcp = $builder.tcp(from_port, to_port, sequence, 1000);
                tcp = if flags.contains('S') { tcp.syn() } else { tcp };
                tcp = if flags.contains('A') { tcp.ack(1) } else { tcp };
                tcp.write(&mut frame, payload).unwrap()
            }};
        }
        let wide = |[a, b, c, d]: [u8; 4]| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d];
        match self.link {
            Link::Ethernet => write!(PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(from, to, 64)),
            Link::Vlan6 => write!(
                PacketBuilder::ethernet2([1; 6], [2; 6]).single_vlan(etherparse::VlanId::try_new(7).unwrap()).ipv6(
                    wide(from),
                    wide(to),
                    64
                )
            ),
            _ => write!(PacketBuilder::ipv4(from, to, 64)),
        }
        let head: &[u8] = match self.link {
            Link::Cooked => &[0, 0, 0, 1, 0, 6, 1, 1, 1, 1, 1, 1, 0, 0, 8, 0],
            Link::Cooked2 => &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 1, 1, 1, 1, 1, 0, 0],
            Link::Null => &[2, 0, 0, 0],
            _ => &[],
        };
        self.frame(&[head, &frame].concat());
    }

    fn frame(&mut self, frame: &[u8]) {
        self.packets += 1;
        let length = u32::try_from(frame.len()).unwrap().to_le_bytes();
        let seconds = u32::try_from(BEGAN).unwrap().to_le_bytes();
        let micros = (self.packets * 1000).to_le_bytes();
        self.bytes.extend([seconds, micros, length, length].concat());
        self.bytes.extend(frame);
    }
}

impl Dialogue {
    /// A connection that is opened in the capture.
    fn open(capture: &mut Capture, port: u16) -> Self {
        // The numbers of the client begin anew in its first request.
        let first = [u32::MAX - 20, 7000];
        capture.packet(port, false, first[0], "S", b"");
        capture.packet(port, true, first[1], "SA", b"");
        Self { port, next: first.map(|sequence| sequence.wrapping_add(1)) }
    }

    fn say(&mut self, capture: &mut Capture, from_server: bool, payload: impl AsRef<[u8]>) {
        let (payload, next) = (payload.as_ref(), &mut self.next[usize::from(from_server)]);
        capture.packet(self.port, from_server, *next, "A", payload);
        *next = next.wrapping_add(u32::try_from(payload.len()).unwrap());
    }
}

fn post(id: u32, tool: &str, headers: &str) -> String {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#);
    let length = body.len();
    format!("POST /mcp HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
}

fn result(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)
}

fn answer(body: &str, headers: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What was left out, as it is said.
fn left_out(file: &[u8]) -> Vec<String> {
    let recording = read(&Bytes::copy_from_slice(file), ImportFormat::Pcap).unwrap();
    recording.left_out.iter().map(LeftOut::to_string).collect()
}

/// The milliseconds after the beginning at which an entry that holds this text was written.
fn at(all: &[Entry], part: &str) -> u64 {
    (all.iter().find(|entry| text(entry).contains(part)).unwrap().at - BEGAN * 1_000_000_000) / 1_000_000
}

/// Proves SO-13.
#[test]
fn a_capture_of_tcpdump_is_imported() {
    let all = entries(include_bytes!("../../../tests/recordings/session.pcap")).unwrap();
    in_order(&all);
    let names: Vec<String> = exchanges(&all).iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect();
    let calls: Vec<&String> = names.iter().filter(|name| name.contains("tools/call")).collect();
    assert_eq!(names[0], "1 1 signalbox initialize - success");
    assert_eq!(calls.len(), 2, "{names:?}");
    assert!(calls[0].ends_with("echo success") && calls[1].ends_with("countdown success"), "{names:?}");
    assert_eq!((session(&all).transport.as_str(), session(&all).client.as_deref()), ("http", Some("mcp")));
    assert!(all.iter().any(|entry| text(entry).contains("2 to go")), "progress is an event of the call");
}

/// Proves SO-13.
#[test]
fn every_link_type_is_read() {
    for link in [Link::Ethernet, Link::Cooked, Link::Cooked2, Link::Raw, Link::Null, Link::Vlan6] {
        let mut capture = Capture::new(link);
        let mut dialogue = Dialogue::open(&mut capture, CLIENT.1);
        dialogue.say(&mut capture, false, post(1, "add", ""));
        dialogue.say(&mut capture, true, answer(&result(1), ""));
        assert_eq!(exchanges(&entries(&capture.bytes).unwrap()), ["1 1 server tools/call add success 1"]);
    }
}

/// Proves SO-13.
#[test]
fn segments_that_are_late_repeated_or_overlap_are_put_in_order() {
    let mut capture = Capture::new(Link::Ethernet);
    let mut dialogue = Dialogue::open(&mut capture, CLIENT.1);
    // Two requests at once, over several segments, of which one comes first that should come last.
    let both = [post(1, "add", ""), post(2, "subtract", "")].concat();
    let bytes = both.as_bytes();
    let start = dialogue.next[0];
    let mut part = |from: usize, to: usize| {
        let sequence = start.wrapping_add(u32::try_from(from).unwrap());
        capture.packet(CLIENT.1, false, sequence, "A", &bytes[from..to]);
    };
    part(0, 30);
    part(120, bytes.len());
    part(0, 30);
    part(20, 100);
    part(90, 130);
    dialogue.say(&mut capture, true, answer(&result(1), ""));
    dialogue.say(&mut capture, true, answer(&result(2), ""));
    let all = entries(&capture.bytes).unwrap();
    in_order(&all);
    assert_eq!(
        exchanges(&all),
        ["1 1 server tools/call add success 1", "2 1 server tools/call subtract success 2"],
        "both arrived with packet 7, which filled the gap"
    );
    assert!(left_out(&capture.bytes).is_empty());
}

/// Proves SO-13.
#[test]
fn events_have_the_times_of_their_packets_and_connections_of_a_session_are_one() {
    let mut capture = Capture::new(Link::Ethernet);
    let id = "Mcp-Session-Id: k-1\r\n";
    let mut listening = Dialogue::open(&mut capture, 50_001);
    let mut calling = Dialogue::open(&mut capture, 50_002);
    listening.say(&mut capture, false, format!("GET /mcp HTTP/1.1\r\n{id}Accept: text/event-stream\r\n\r\n"));
    listening.say(&mut capture, true, EVENTS);
    calling.say(&mut capture, false, post(1, "add", id));
    let progress = r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"half"}}"#;
    let events =
        [EVENTS, &chunk(&format!("{progress}\n\n")), &chunk(&format!("id: 9\ndata: {}\n\n", result(1))), "0\r\n\r\n"];
    let events = events.concat();
    let cut = events.find("id: 9").unwrap() + 3;
    calling.say(&mut capture, true, &events[..cut]);
    let loud = r#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    listening.say(&mut capture, true, chunk(&format!("{loud}\n\n")));
    calling.say(&mut capture, true, &events[cut..]);
    // The answer to this is never captured.
    calling.say(&mut capture, false, post(2, "late", id));
    let all = entries(&capture.bytes).unwrap();
    in_order(&all);
    assert_eq!(exchanges(&all)[0], "1 1 server tools/call add success 3");
    assert_eq!([at(&all, "half"), at(&all, "list_changed"), at(&all, "result")], [8, 9, 10]);
    assert!(all.iter().all(|entry| entry.session.is_none_or(|session| session == 1)), "one session");
    assert!(all.iter().any(|entry| text(entry).contains("late")));
    assert!(!format!("{all:?}").contains("k-1"), "ids of sessions are hashed");
}

/// Proves SO-13.
#[test]
fn clients_of_http_and_sse_are_told_apart_by_their_endpoints() {
    let mut capture = Capture::new(Link::Ethernet);
    let mut streams = [50_001, 50_002].map(|port| Dialogue::open(&mut capture, port));
    for (number, stream) in streams.iter_mut().enumerate() {
        stream.say(&mut capture, false, "GET /sse HTTP/1.1\r\nHost: x\r\n\r\n");
        let endpoint = chunk(&format!("event: endpoint\ndata: /messages?id={number}\n\n"));
        stream.say(&mut capture, true, format!("{EVENTS}{endpoint}"));
    }
    let mut posts = Dialogue::open(&mut capture, 50_003);
    for (number, tool) in ["add", "subtract"].iter().enumerate() {
        let request = post(1, tool, "").replace("/mcp", &format!("/messages?id={number}"));
        posts.say(&mut capture, false, request);
        posts.say(&mut capture, true, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    }
    for stream in streams.iter_mut().rev() {
        stream.say(&mut capture, true, chunk(&format!("event: message\ndata: {}\n\n", result(1))));
    }
    let all = entries(&capture.bytes).unwrap();
    let mut told = exchanges(&all);
    told.sort();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("tools/call add success 5") && told[1].contains("tools/call subtract success 2"),
        "{told:?}"
    );
    assert_eq!(session(&all).transport, "sse");
}

/// Proves SO-13.
#[test]
fn a_lost_segment_ends_the_stream_and_is_said() {
    let mut capture = Capture::new(Link::Ethernet);
    let mut dialogue = Dialogue::open(&mut capture, CLIENT.1);
    for id in 1..=3 {
        dialogue.say(&mut capture, false, post(id, "add", ""));
        let reply = answer(&result(id), "");
        if id == 2 {
            dialogue.next[1] += u32::try_from(reply.len()).unwrap();
        } else {
            dialogue.say(&mut capture, true, reply);
        }
    }
    let all = entries(&capture.bytes).unwrap();
    assert_eq!(exchanges(&all)[0], "1 1 server tools/call add success 1");
    assert_eq!(all.iter().filter(|entry| text(entry).contains("result")).count(), 1);
    assert_eq!(all.iter().filter(|entry| text(entry).contains("tools/call")).count(), 3);
    let expected = "connection 1 (10.0.0.1:50000 to 10.0.0.2:80) lacks bytes before packet 7; what that side sent after them was left out";
    assert_eq!(left_out(&capture.bytes), [expected]);
}

/// Proves SO-13.
#[test]
fn a_capture_may_begin_in_the_middle_of_a_connection() {
    let mut capture = Capture::new(Link::Ethernet);
    let mut dialogue = Dialogue { port: CLIENT.1, next: [500, 900] };
    dialogue.say(&mut capture, true, "the rest of an answer");
    dialogue.say(&mut capture, true, answer(&result(8), ""));
    dialogue.say(&mut capture, false, post(1, "add", ""));
    dialogue.say(&mut capture, true, answer(&result(1), ""));
    assert_eq!(exchanges(&entries(&capture.bytes).unwrap()), ["1 1 server tools/call add success 1"]);
    assert!(left_out(&capture.bytes)[0].contains("began before the capture"));
}

/// Proves SO-13.
#[test]
fn what_cannot_be_read_is_named() {
    let mut capture = Capture::new(Link::Ethernet);
    let mut hidden = Dialogue::open(&mut capture, 50_001);
    hidden.say(&mut capture, false, [22, 3, 1, 0, 5, 1, 0, 0, 1, 0]);
    let wrong = |capture: &Capture| entries(&capture.bytes).unwrap_err().to_string();
    let encrypted = "connection 1 (10.0.0.1:50001 to 10.0.0.2:80) is encrypted and was left out";
    assert_eq!(wrong(&capture), format!("the file holds no MCP messages that can be read: {encrypted}"));
    let mut dialogue = Dialogue::open(&mut capture, 50_002);
    dialogue.say(&mut capture, false, post(1, "add", ""));
    dialogue.say(
        &mut capture,
        true,
        answer("\x1f\u{8}", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n"),
    );
    dialogue.say(&mut capture, false, "no HTTP at all\r\n\r\n");
    let said = left_out(&capture.bytes);
    assert_eq!(said[0], encrypted);
    assert!(said[1].contains("a body in the encoding \"gzip\" at packet 7"), "{said:?}");
    assert!(said[2].contains("cannot be read from packet 8 on"), "{said:?}");
    capture.bytes.pop();
    assert_eq!(wrong(&capture), "packet 8: the file ends in the middle of it");
    assert!(wrong(&Capture::new(Link::Raw)).starts_with("the file holds no MCP messages; "));
    let other = read(&Bytes::from_static(b"{}"), ImportFormat::Pcap).unwrap_err();
    assert!(matches!(other, ImportError::At { place, .. } if place == "the head of the file"));
}

fn web_socket_frame(first: u8, masked: bool, text: &str) -> Vec<u8> {
    let key = if masked { [1, 2, 3, 4] } else { [0; 4] };
    let mut frame = vec![first, 126 | u8::from(masked) << 7];
    frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    frame.extend(key.iter().filter(|_| masked));
    frame.extend(text.bytes().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

/// Proves SO-13.
#[test]
fn web_sockets_are_read() {
    let mut capture = Capture::new(Link::Ethernet);
    let mut dialogue = Dialogue::open(&mut capture, CLIENT.1);
    dialogue.say(&mut capture, false, "GET /mcp HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    dialogue.say(&mut capture, true, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#;
    dialogue.say(&mut capture, false, web_socket_frame(0x01, true, &call[..20]));
    dialogue.say(&mut capture, false, web_socket_frame(0x89, true, "ping"));
    dialogue.say(&mut capture, false, web_socket_frame(0x80, true, &call[20..]));
    dialogue.say(&mut capture, true, web_socket_frame(0x81, false, &result(1)));
    let all = entries(&capture.bytes).unwrap();
    assert_eq!(exchanges(&all), ["1 1 server tools/call add success 1"]);
    assert_eq!(session(&all).transport, "websocket");
    dialogue.say(&mut capture, true, web_socket_frame(0xc1, false, "compressed"));
    assert!(left_out(&capture.bytes)[0].contains("a WebSocket frame is compressed"));
}

/// A block of pcapng, with both its lengths.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = u32::try_from(padded + 12).unwrap().to_be_bytes();
    let mut all = [kind.to_be_bytes(), length].concat();
    all.extend(body);
    all.resize(8 + padded, 0);
    all.extend(length);
    all
}

/// Proves SO-13.
#[test]
fn pcapng_of_the_other_byte_order_has_times_by_its_interface() {
    let mut capture = Capture::new(Link::Ethernet);
    let mut dialogue = Dialogue::open(&mut capture, CLIENT.1);
    dialogue.say(&mut capture, false, post(1, "add", ""));
    dialogue.say(&mut capture, true, answer(&result(1), ""));
    let mut file = block(0x0a0d_0d0a, &[&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[0xff; 8]].concat());
    // In nanoseconds.
    file.extend(block(1, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0]));
    let packets = super::packets::Packets::new(&capture.bytes).unwrap().map(Result::unwrap);
    for (packet, number) in packets.zip(0_u64..) {
        let length = u32::try_from(packet.data.len()).unwrap().to_be_bytes();
        let time = (BEGAN * 1_000_000_000 + number * 5_000_000).to_be_bytes();
        file.extend(block(6, &[&[0; 4][..], &time, &length, &length, packet.data].concat()));
    }
    let all = entries(&file).unwrap();
    assert_eq!(exchanges(&all), ["1 1 server tools/call add success 5"]);
    assert_eq!(at(&all, "result"), 15);
    file.extend(block(6, &[0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    let wrong = entries(&file).unwrap_err().to_string();
    assert_eq!(wrong, "packet 5: it names an interface that the file does not describe");
}
