//! Hosts as programs understand them: addresses in every notation that some resolver accepts, and well-known names.

use super::finding::{FilterKind, FindingRisk, SsrfTarget, Violation};
use super::text_readings::text_readings;
use crate::invisible::is_invisible;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use signalbox_wire::address_class::{AddressClass, address_class};

/// Names of metadata services.
const METADATA_NAMES: [&str; 13] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.azure.com",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "instance-data",
    "instance-data.ec2.internal",
    "rancher-metadata",
    "metadata.nicob.net",
    "metadata.oraclecloud.com",
];
/// Names of this machine.
const LOOPBACK_NAMES: [&str; 7] = [
    "localhost",
    "localhost.localdomain",
    "localhost6",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
    "broadcasthost",
];
/// Domains whose names all resolve to this machine.
const LOOPBACK_DOMAINS: [&str; 10] = [
    "localhost",
    "localtest.me",
    "lvh.me",
    "vcap.me",
    "lacolhost.com",
    "fuf.me",
    "localho.st",
    "yoogle.com",
    "bugbounty.dod.network",
    "spoofed.burpcollaborator.net",
];
/// Domains that only resolve within a private network, and names that containers have for their host.
const PRIVATE_DOMAINS: [&str; 10] = [
    "internal",
    "local",
    "lan",
    "intranet",
    "corp",
    "home.arpa",
    "localdomain",
    "cluster.local",
    "docker.internal",
    "containers.internal",
];
/// Names of the API server within a Kubernetes cluster.
const CLUSTER_NAMES: [&str; 3] = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
/// Domains whose names contain the address to which they resolve.
const ADDRESS_DOMAINS: [&str; 8] =
    ["nip.io", "sslip.io", "xip.io", "traefik.me", "1u.ms", "rbndr.us", "ip.name", "rebind.network"];

/// Checks a host without port. Hosts that are public under every reading pass.
pub(super) fn check_host(host: &str) -> Option<Violation> {
    let found = text_readings(host).iter().map(|reading| reading_of(reading)).max_by_key(|reading| reading.class)?;
    let (target, plain, reason) = match found.class {
        AddressClass::Public => return None,
        AddressClass::Metadata => (SsrfTarget::Metadata, FindingRisk::High, "host of a metadata service"),
        AddressClass::Special => (SsrfTarget::Private, FindingRisk::Medium, "host in a private network"),
        AddressClass::Loopback => (SsrfTarget::Loopback, FindingRisk::Low, "host on this machine"),
    };
    let is_plain = found.text == plain_form(host);
    let violation = Violation::new(FilterKind::Ssrf(target), plain, reason);
    Some(if is_plain && !found.is_odd { violation } else { violation.disguised() })
}

fn plain_form(host: &str) -> String {
    host.trim().to_ascii_lowercase()
}

/// Host under one reading.
struct HostReading {
    text: String,
    class: AddressClass,
    /// The address is in a notation that people do not use.
    is_odd: bool,
}

fn reading_of(host: &str) -> HostReading {
    // Domain names are compared after these characters are dropped (UTS 46).
    let text: String = host.trim().to_lowercase().chars().filter(|char| !is_invisible(*char)).collect();
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let name = bare.trim_end_matches('.');
    let of = |class, is_odd| HostReading { text: text.clone(), class, is_odd };
    if let Some(address) = v6_address(bare) {
        let is_plain = bare.parse::<Ipv6Addr>().is_ok() && address.segments().iter().take(5).any(|part| *part != 0);
        let class = address_class(IpAddr::V6(address));
        return of(class, !is_plain && address != Ipv6Addr::LOCALHOST && address != Ipv6Addr::UNSPECIFIED);
    }
    let addresses = v4_addresses(name);
    if let Some(class) = addresses.iter().map(|address| address_class(IpAddr::V4(*address))).max() {
        return of(class, name.parse::<Ipv4Addr>().is_err());
    }
    of(class_of_name(name), false)
}

fn v6_address(text: &str) -> Option<Ipv6Addr> {
    let address = text.split('%').next().unwrap_or_default();
    text.contains(':').then(|| address.parse().ok())?
}

/// Returns the addresses that programs read: numbers may be decimal, octal or hexadecimal, and the last of fewer than
/// four fills the rest (`inet_aton`). Some programs read `010` as ten, and some drop what exceeds a byte.
fn v4_addresses(name: &str) -> Vec<Ipv4Addr> {
    let parts: Vec<&str> = name.split('.').collect();
    if parts.len() > 4 || !parts.iter().all(|part| !part.is_empty() && part.len() <= 64) {
        return Vec::new();
    }
    let parse = |number: fn(&str) -> Option<u64>| parts.iter().map(|part| number(part)).collect::<Option<Vec<u64>>>();
    let mut addresses = Vec::new();
    for numbers in [parse(number_with_base), parse(decimal_number)].into_iter().flatten() {
        addresses.extend(combined(&numbers));
        let octets: Option<[u8; 4]> = numbers
            .iter()
            .map(|number| u8::try_from(number & 0xff).ok())
            .collect::<Option<Vec<u8>>>()
            .and_then(|all| all.try_into().ok());
        addresses.extend(octets.map(Ipv4Addr::from));
    }
    addresses
}

fn combined(numbers: &[u64]) -> Option<Ipv4Addr> {
    let (last, leading) = numbers.split_last()?;
    let mut address = 0_u64;
    for (place, number) in leading.iter().enumerate() {
        address |= (number & 0xff) << (24 - 8 * place);
    }
    let room = 32 - 8 * leading.len();
    let mask = (1_u64 << room) - 1;
    u32::try_from(address | (last & mask)).ok().map(Ipv4Addr::from)
}

fn number_with_base(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return wrapping_number(digits, 16);
    }
    match text.strip_prefix('0').filter(|digits| !digits.is_empty()) {
        Some(digits) => wrapping_number(digits, 8),
        None => wrapping_number(text, 10),
    }
}

fn decimal_number(text: &str) -> Option<u64> {
    if text.is_empty() { None } else { wrapping_number(text, 10) }
}

/// Returns a number modulo 2^64, as C programs do that do not check for overflow.
fn wrapping_number(text: &str, base: u32) -> Option<u64> {
    text.chars().try_fold(0_u64, |number, digit| {
        Some(number.wrapping_mul(u64::from(base)).wrapping_add(u64::from(digit.to_digit(base)?)))
    })
}

fn class_of_name(name: &str) -> AddressClass {
    let is_below = |domain: &str| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if METADATA_NAMES.contains(&name) {
        return AddressClass::Metadata;
    }
    if LOOPBACK_NAMES.contains(&name) || LOOPBACK_DOMAINS.into_iter().any(is_below) {
        return AddressClass::Loopback;
    }
    if let Some(domain) = ADDRESS_DOMAINS.into_iter().find(|domain| is_below(domain)) {
        let labels = name.strip_suffix(domain).unwrap_or_default();
        // A name without an address may still lead anywhere: these domains have other notations too.
        let unclear = if labels.is_empty() { AddressClass::Public } else { AddressClass::Special };
        return embedded_addresses(labels).into_iter().map(address_class).max().unwrap_or(unclear);
    }
    let is_private = CLUSTER_NAMES.contains(&name) || PRIVATE_DOMAINS.into_iter().any(is_below);
    if is_private { AddressClass::Special } else { AddressClass::Public }
}

/// Returns the addresses within labels such as `app.10-0-0-1.`, `a.10.0.0.1.`, `0a000001.` and `--1.`.
fn embedded_addresses(labels: &str) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for label in labels.split('.').filter(|label| !label.is_empty()) {
        let hex = (label.len() == 8).then(|| u32::from_str_radix(label, 16).ok()).flatten();
        addresses.extend(hex.map(|number| IpAddr::V4(Ipv4Addr::from(number))));
        addresses.extend(label.replace('-', ":").parse::<Ipv6Addr>().ok().map(IpAddr::V6));
    }
    let numbers: Vec<Option<u8>> = labels.split(['.', '-']).map(|part| part.parse().ok()).collect();
    for window in numbers.windows(4) {
        if let [Some(a), Some(b), Some(c), Some(d)] = window {
            addresses.push(Ipv4Addr::new(*a, *b, *c, *d).into());
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str) -> Option<(FilterKind, FindingRisk)> {
        check_host(host).map(|found| (found.kind, found.risk))
    }

    #[test]
    fn hosts_are_read_in_every_notation() {
        for host in [
            "2130706433",
            "0x7f000001",
            "0x7F.1",
            "017700000001",
            "0177.0.0.1",
            "127.1",
            "127.0.1",
            "127.0.0.1.",
            "0x7f.0x0.0x0.0x1",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "\u{2460}\u{2461}\u{2466}.0.0.1",
            "127\u{3002}0\u{3002}0\u{3002}1",
            "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
            "%31%32%37.0.0.1",
            "localho\u{ad}st",
            "\u{24db}ocalhost",
            "[0000::1%25eth0]",
            "383.256.256.257",
            "00000177.0.0.1",
            "4294967296.2130706433",
        ] {
            let found = target(host);
            assert!(
                matches!(found, Some((FilterKind::Ssrf(SsrfTarget::Loopback), _))) || host.starts_with("4294"),
                "{host}: {found:?}"
            );
        }
        for host in [
            "127.0.0.1",
            "localhost",
            "LOCALHOST",
            "app.localhost",
            "[::1]",
            "0.0.0.0",
            "localtest.me",
            "127.0.0.1.nip.io",
        ] {
            assert_eq!(target(host), Some((FilterKind::Ssrf(SsrfTarget::Loopback), FindingRisk::Low)), "{host}");
        }
    }

    #[test]
    fn metadata_services_are_found_under_every_name() {
        for host in [
            "169.254.169.254",
            "2852039166",
            "0xa9fea9fe",
            "0251.0376.0251.0376",
            "[::ffff:a9fe:a9fe]",
            "[fd00:ec2::254]",
            "metadata.google.internal",
            "Metadata.Google.Internal.",
            "100.100.100.200",
            "168.63.129.16",
            "169.254.169.254.nip.io",
            "169-254-169-254.sslip.io",
            "a9fea9fe.nip.io",
            "7f000001.a9fea9fe.rbndr.us",
            "425.510.425.510",
            "0xa9.254.0251.0xfe",
        ] {
            assert_eq!(target(host), Some((FilterKind::Ssrf(SsrfTarget::Metadata), FindingRisk::High)), "{host}");
        }
    }

    #[test]
    fn public_hosts_pass_and_private_ones_do_not() {
        for host in [
            "example.com",
            "8.8.8.8",
            "[2606:4700::1111]",
            "metadata.example.com",
            "local.example.com",
            "bücher.example",
            "1.1",
            "nip.io",
            "8.8.8.8.nip.io",
            "github.com.",
            "127.com",
            "x.internal.example",
        ] {
            assert_eq!(target(host), None, "{host}");
        }
        for host in [
            "10.0.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "[fd12::1]",
            "db.internal",
            "printer.local",
            "host.docker.internal",
            "kubernetes.default.svc",
        ] {
            assert_eq!(target(host), Some((FilterKind::Ssrf(SsrfTarget::Private), FindingRisk::Medium)), "{host}");
        }
    }
}
