//! Extracts TCP segments from packets: Ethernet with VLAN tags, Linux cooked captures, loopback and bare IP.

use super::packets::Packet;
use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice};
use pcap_parser::Linktype;
use std::net::{IpAddr, SocketAddr};

/// Link types of bare IP on OpenBSD and in some tools.
const RAW_BSD: [i32; 2] = [12, 14];
/// Length of the head of a loopback packet, which is the address family.
const FAMILY: usize = 4;
/// Head of a Linux cooked packet of version 1.
const COOKED: CookedHead = CookedHead { length: 16, protocol: 14 };
/// Head of a Linux cooked packet of version 2.
const COOKED_2: CookedHead = CookedHead { length: 20, protocol: 0 };

/// Length of a packet's head, and the offset of the protocol in it.
struct CookedHead {
    length: usize,
    protocol: usize,
}

#[derive(Copy, Clone, Debug)]
pub(super) struct Segment<'a> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) sequence: u32,
    pub(super) syn: bool,
    pub(super) ack: bool,
    pub(super) rst: bool,
    pub(super) payload: &'a [u8],
}

/// Content of a packet.
#[derive(Copy, Clone, Debug)]
pub(super) enum PacketContent<'a> {
    /// An unfragmented segment of TCP.
    Segment(Segment<'a>),
    /// A fragment of an IP packet that carries a segment.
    Fragment,
    /// A packet without TCP.
    Other,
    /// A packet of an unsupported link type.
    UnknownLink,
}

/// Extracts the content of a packet.
pub(super) fn held<'a>(packet: &Packet<'a>) -> PacketContent<'a> {
    let data = packet.data;
    let sliced = match Linktype(packet.link) {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        Linktype::LINUX_SLL => cooked(data, &COOKED),
        Linktype::LINUX_SLL2 => cooked(data, &COOKED_2),
        // The number of the family differs between systems, so the IP version is read instead.
        Linktype::NULL | Linktype::LOOP => data.get(FAMILY..).and_then(|rest| LaxSlicedPacket::from_ip(rest).ok()),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => LaxSlicedPacket::from_ip(data).ok(),
        Linktype(other) if RAW_BSD.contains(&other) => LaxSlicedPacket::from_ip(data).ok(),
        _ => return PacketContent::UnknownLink,
    };
    sliced.map_or(PacketContent::Other, |sliced| of_sliced(&sliced))
}

fn cooked<'a>(data: &'a [u8], head: &CookedHead) -> Option<LaxSlicedPacket<'a>> {
    let protocol = data.get(head.protocol..)?.first_chunk::<2>()?;
    Some(LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(*protocol)), data.get(head.length..)?))
}

fn of_sliced<'a>(sliced: &LaxSlicedPacket<'a>) -> PacketContent<'a> {
    let (from, to): (IpAddr, IpAddr) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        Some(LaxNetSlice::Ipv6(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        _ => return PacketContent::Other,
    };
    match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => PacketContent::Segment(segment(from, to, tcp)),
        _ if sliced.ip_payload().is_some_and(|ip| ip.fragmented && ip.ip_number == IpNumber::TCP) => {
            PacketContent::Fragment
        }
        _ => PacketContent::Other,
    }
}

fn segment<'a>(from: IpAddr, to: IpAddr, tcp: &TcpSlice<'a>) -> Segment<'a> {
    Segment {
        from: SocketAddr::new(from, tcp.source_port()),
        to: SocketAddr::new(to, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        syn: tcp.syn(),
        ack: tcp.ack(),
        rst: tcp.rst(),
        payload: tcp.payload(),
    }
}
