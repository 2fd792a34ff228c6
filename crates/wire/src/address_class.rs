//! Classes of IP addresses, by the network to which a packet would go.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Network to which an address leads.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AddressClass {
    /// Address of the public Internet.
    Public,
    /// Private, link-local, reserved or otherwise special network.
    Special,
    /// Address of this machine itself.
    Loopback,
    /// Service of a cloud provider that answers with the credentials of the machine that asks.
    Metadata,
}

/// Metadata services within IPv4: AWS, GCP, Azure and others; ECS and EKS; Azure's agent; Alibaba; Oracle; Scaleway.
const METADATA_V4: [[u8; 4]; 7] = [
    [169, 254, 169, 254],
    [169, 254, 170, 2],
    [169, 254, 170, 23],
    [168, 63, 129, 16],
    [100, 100, 100, 200],
    [192, 0, 0, 192],
    [169, 254, 42, 42],
];
/// Metadata services within IPv6: AWS, EKS, GCP, Scaleway.
const METADATA_V6: [[u16; 8]; 4] = [
    [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
    [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23],
    [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254],
    [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42],
];

/// Returns the class of an address. An address that embeds another one has the class of that one.
#[must_use]
pub fn address_class(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => class_of_v4(address),
        IpAddr::V6(address) => class_of_v6(address),
    }
}

fn class_of_v4(address: Ipv4Addr) -> AddressClass {
    let [a, b, c, _] = address.octets();
    if METADATA_V4.contains(&address.octets()) {
        return AddressClass::Metadata;
    }
    // Systems treat 0.0.0.0 as an address of their own.
    if address.is_loopback() || address.is_unspecified() {
        return AddressClass::Loopback;
    }
    let special = address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Carrier-grade NAT, protocol assignments, 6to4 relays and benchmarks.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19));
    if special { AddressClass::Special } else { AddressClass::Public }
}

fn class_of_v6(address: Ipv6Addr) -> AddressClass {
    let segments @ [s0, s1, s2, s3, s4, s5, s6, s7] = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        class_of_v4(Ipv4Addr::new(a, b, c, d))
    };
    if METADATA_V6.contains(&segments) {
        return AddressClass::Metadata;
    }
    match [s0, s1, s2, s3, s4, s5] {
        // IPv4-mapped, IPv4-translated and NAT64 addresses lead to the address inside.
        [0, 0, 0, 0, 0, 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => v4(s6, s7),
        [0, 0, 0, 0, 0, 0] if s6 == 0 && s7 < 2 => AddressClass::Loopback,
        // The old IPv4-compatible form, NAT64 with a local prefix, Teredo and ISATAP are never public.
        [0, 0, 0, 0, 0, 0] | [0x64, 0xff9b, 1, ..] | [_, _, _, _, 0 | 0x200, 0x5efe] => {
            v4(s6, s7).max(AddressClass::Special)
        }
        [0x2001, 0, ..] => v4(!s6, !s7).max(AddressClass::Special),
        // 6to4.
        [0x2002, high, low, ..] => v4(high, low),
        // Other protocol assignments, documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => AddressClass::Special,
        [0x3fff, second, ..] if second < 0x1000 => AddressClass::Special,
        // The link-local address that is made of 169.254.169.254.
        [0xfe80, ..] if (s6, s7) == (0xa9fe, 0xa9fe) => AddressClass::Metadata,
        // Only global unicast is left: no unique local, link-local, site-local or multicast addresses.
        [first, ..] if first & 0xe000 == 0x2000 => AddressClass::Public,
        _ => AddressClass::Special,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_embedded_address_decides() {
        use AddressClass::{Loopback, Metadata, Public, Special};
        for (address, class) in [
            ("8.8.8.8", Public),
            ("10.0.0.1", Special),
            ("127.8.8.8", Loopback),
            ("0.0.0.0", Loopback),
            ("169.254.169.254", Metadata),
            ("168.63.129.16", Metadata),
            ("100.100.100.200", Metadata),
            ("100.100.100.201", Special),
            ("::1", Loopback),
            ("::", Loopback),
            ("::7f00:1", Loopback),
            ("::808:808", Special),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:a9fe:a9fe", Metadata),
            ("::ffff:8.8.8.8", Public),
            ("64:ff9b::a9fe:a9fe", Metadata),
            ("64:ff9b:1::808:808", Special),
            ("64:ff9b:1::a9fe:a9fe", Metadata),
            ("2002:a9fe:a9fe::1", Metadata),
            ("2002:808:808::", Public),
            ("2001:0:1:2:3:4:5601:5601", Metadata),
            ("2001:0:1:2:3:4:f7f7:f7f7", Special),
            ("fe80::5efe:10.0.0.1", Special),
            ("fe80::a9fe:a9fe", Metadata),
            ("fd00:ec2::254", Metadata),
            ("fd00:ec2::255", Special),
            ("2606:4700::1111", Public),
            ("ff02::1", Special),
        ] {
            assert_eq!(address_class(address.parse().unwrap()), class, "{address}");
        }
    }
}
