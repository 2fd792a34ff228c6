//! Packet captures, pcap and pcapng, of MCP over plain HTTP and WebSocket.
//!
//! Packets become TCP streams ([`tcp_streams`]), streams become HTTP exchanges ([`connection_reader`]), and exchanges
//! become messages as those of a HAR file do. Each message has the time of the packet that completed it.

mod connection_reader;
mod http_stream;
mod packets;
mod segment;
mod tcp_streams;
#[cfg(test)]
mod tests;
mod web_socket;

pub(super) use packets::is_capture;

use super::error::ImportError;
use super::http_exchange;
use super::left_out::LeftOut;
use super::recording::ImportedRecording;
use connection_reader::ConnectionReader;
use packets::Packets;
use segment::PacketContent;
use std::collections::BTreeMap;
use tcp_streams::{Mark, TcpStreams};

/// Maximum number of omissions that are listed.
const MAX_LEFT_OUT: usize = 1_000;

pub(super) fn read(file: &[u8]) -> Result<ImportedRecording, ImportError> {
    let mut streams = TcpStreams::default();
    let (mut links, mut fragments) = (BTreeMap::<i32, u64>::new(), 0);
    for packet in Packets::new(file)? {
        let packet = packet?;
        match segment::held(&packet) {
            PacketContent::Segment(segment) => streams.push(Mark { packet: packet.number, at: packet.at }, &segment)?,
            PacketContent::Fragment => fragments += 1,
            PacketContent::UnknownLink => *links.entry(packet.link).or_default() += 1,
            PacketContent::Other => {}
        }
    }
    let mut left_out: Vec<LeftOut> =
        links.into_iter().map(|(link, packets)| LeftOut::LinkType { link, packets }).collect();
    left_out.extend((fragments > 0).then_some(LeftOut::Fragments { packets: fragments }));
    let (mut exchanges, mut headers) = (Vec::new(), 0);
    for (number, connection) in (1..).zip(streams.connections()) {
        let mut reader = ConnectionReader::new(number, &connection, &mut headers);
        reader.read(&mut exchanges)?;
        left_out.extend(reader.left_out());
        left_out.truncate(MAX_LEFT_OUT);
    }
    let mut recording = http_exchange::recording(exchanges)?;
    recording.left_out = left_out;
    Ok(recording)
}
