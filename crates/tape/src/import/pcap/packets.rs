//! Packets of a capture file: pcap in both byte orders and resolutions, and pcapng.

use crate::import::error::ImportError;
use pcap_parser::nom;
use pcap_parser::pcap::{LegacyPcapBlock, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified};
use pcap_parser::pcapng::Block;
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{PcapBlockOwned, PcapError, PcapHeader, PcapNGSlice, parse_pcap_header};

const NANOS: u64 = 1_000_000_000;
/// Maximum number of interfaces of a file.
const MAX_INTERFACES: usize = 10_000;
/// Default resolution of times, in units per second, for interfaces that name no usable one.
const MICROS: u64 = 1_000_000;
/// Mask of the link type within its field.
const LINK_TYPE: i32 = 0xffff;

/// A packet of a capture file.
#[derive(Copy, Clone, Debug)]
pub(super) struct Packet<'a> {
    /// Number in the file, counted from 1 as other programs do.
    pub(super) number: u64,
    /// Time of capture in nanoseconds since 1970, if the file states it.
    pub(super) at: Option<u64>,
    /// Link type of the packet.
    pub(super) link: i32,
    /// Captured bytes, possibly truncated.
    pub(super) data: &'a [u8],
}

/// Iterator over the packets of a file. It ends after the first error.
pub(super) struct Packets<'a> {
    container: Option<Container<'a>>,
    /// Number of the last packet.
    number: u64,
}

enum Container<'a> {
    Pcap { header: PcapHeader, rest: &'a [u8] },
    Pcapng { blocks: PcapNGSlice<'a>, interfaces: Vec<Interface> },
}

struct Interface {
    link: i32,
    /// Resolution of times, in units per second.
    resolution: u64,
    /// Offset of times, in seconds.
    offset: i64,
}

/// Returns true if a file begins like a capture.
pub(in crate::import) fn is_capture(file: &[u8]) -> bool {
    const MAGIC: [[u8; 4]; 6] = [
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x34, 0xcd, 0xb2, 0xa1],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    MAGIC.iter().any(|magic| file.starts_with(magic))
}

impl<'a> Packets<'a> {
    /// Opens a capture.
    ///
    /// # Errors
    /// Fails if the file is not a capture.
    pub(super) fn new(file: &'a [u8]) -> Result<Self, ImportError> {
        let container = if let Ok((rest, header)) = parse_pcap_header(file) {
            Container::Pcap { header, rest }
        } else {
            let blocks = PcapNGSlice::from_slice(file).map_err(|error| wrong("the head of the file", &error))?;
            Container::Pcapng { blocks, interfaces: Vec::new() }
        };
        Ok(Self { container: Some(container), number: 0 })
    }

    fn step(&mut self) -> Option<Result<Packet<'a>, ImportError>> {
        let number = self.number + 1;
        let place = format_args!("packet {number}").to_string();
        let packet = match self.container.as_mut()? {
            Container::Pcap { rest: [], .. } => return None,
            Container::Pcap { header, rest } => of_pcap(header, rest, number),
            Container::Pcapng { blocks, interfaces } => of_pcapng(blocks, interfaces, number)?,
        };
        self.number = number;
        Some(packet.map_err(|error| match error {
            Broken::Container(error) => wrong(&place, &error),
            Broken::Here(why) => ImportError::At { place, why: why.to_owned() },
        }))
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if !matches!(step, Some(Ok(_))) {
            self.container = None;
        }
        step
    }
}

/// Error of reading a packet.
enum Broken<'a> {
    Container(nom::Err<PcapError<&'a [u8]>>),
    Here(&'static str),
}

fn of_pcap<'a>(header: &PcapHeader, rest: &mut &'a [u8], number: u64) -> Result<Packet<'a>, Broken<'a>> {
    let parsed = if header.is_modified_format() {
        parse_pcap_frame_modified(rest)
    } else if header.is_bigendian() {
        parse_pcap_frame_be(rest)
    } else {
        parse_pcap_frame(rest)
    };
    let (after, LegacyPcapBlock { ts_sec, ts_usec, data, .. }) = parsed.map_err(Broken::Container)?;
    *rest = after;
    let unit = if header.is_nanosecond_precision() { 1 } else { NANOS / MICROS };
    let at = u64::from(ts_sec) * NANOS + u64::from(ts_usec) * unit;
    Ok(Packet { number, at: Some(at), link: header.network.0 & LINK_TYPE, data })
}

fn of_pcapng<'a>(
    blocks: &mut PcapNGSlice<'a>,
    interfaces: &mut Vec<Interface>,
    number: u64,
) -> Option<Result<Packet<'a>, Broken<'a>>> {
    for block in blocks {
        let block = match block {
            Ok(PcapBlockOwned::NG(block)) => block,
            Ok(_) => continue,
            Err(error) => return Some(Err(Broken::Container(error))),
        };
        match block {
            Block::SectionHeader(_) => interfaces.clear(),
            Block::InterfaceDescription(_) if interfaces.len() >= MAX_INTERFACES => {
                return Some(Err(Broken::Here("the file has more interfaces than are read")));
            }
            Block::InterfaceDescription(described) => interfaces.push(Interface {
                link: described.linktype.0 & LINK_TYPE,
                resolution: described.ts_resolution().filter(|units| *units > 0).unwrap_or(MICROS),
                offset: described.ts_offset(),
            }),
            Block::EnhancedPacket(packet) => {
                let Some(interface) = usize::try_from(packet.if_id).ok().and_then(|id| interfaces.get(id)) else {
                    return Some(Err(Broken::Here("it names an interface that the file does not describe")));
                };
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let captured = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                return Some(Ok(Packet { number, at: interface.time(units), link: interface.link, data: captured }));
            }
            Block::SimplePacket(packet) => {
                let Some(interface) = interfaces.first() else {
                    return Some(Err(Broken::Here("the file describes no interface")));
                };
                let most = packet.orig_len() as usize;
                let captured = packet.data.get(..most).unwrap_or(packet.data);
                return Some(Ok(Packet { number, at: None, link: interface.link, data: captured }));
            }
            _ => {}
        }
    }
    None
}

impl Interface {
    fn time(&self, units: u64) -> Option<u64> {
        let fraction = u128::from(units % self.resolution) * u128::from(NANOS) / u128::from(self.resolution);
        let seconds = (units / self.resolution).checked_add_signed(self.offset)?;
        seconds.checked_mul(NANOS)?.checked_add(u64::try_from(fraction).ok()?)
    }
}

fn wrong(place: &str, error: &nom::Err<PcapError<&[u8]>>) -> ImportError {
    let why = match error {
        nom::Err::Incomplete(_) => "the file ends in the middle of it",
        nom::Err::Error(_) | nom::Err::Failure(_) => "its lengths or its contents make no sense",
    };
    ImportError::At { place: place.to_owned(), why: why.to_owned() }
}
