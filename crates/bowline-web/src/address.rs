//! Which addresses are on the public internet.
//!
//! Follows IANA's special-purpose registries. An IPv6 address that embeds an IPv4 address is judged
//! by the embedded one, because that is where its packets end up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not on the public internet, as in "10.0.0.1 is in a private network"; `None`
/// if it is.
pub(crate) fn why_not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => why_not_public_v4(address),
        IpAddr::V6(address) => why_not_public_v6(address),
    }
}

fn why_not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    let why = match address.octets() {
        [0, ..] => "is this host",
        [127, ..] => "is a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "is in a private network",
        [100, 64..=127, ..] => "is in a carrier's private network",
        [169, 254, ..] => "is a link-local address",
        [192, 0, 0, _] | [192, 88, 99, _] => "is reserved for protocols",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "is for documentation only",
        [198, 18..=19, ..] => "is for benchmarks only",
        [224..=239, ..] => "is a multicast address",
        [240..=255, ..] => "is reserved",
        _ => return None,
    };
    Some(why)
}

fn why_not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(embedded) = embedded_v4(address) {
        return why_not_public_v4(embedded);
    }
    let why = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => "is this host",
        [0, 0, 0, 0, 0, 0, 0, 1] => "is a loopback address",
        [0xfc00..=0xfdff, ..] => "is in a private network",
        [0xfe80..=0xfebf, ..] => "is a link-local address",
        [0xfec0..=0xfeff, ..] => "is a site-local address",
        [0xff00..=0xffff, ..] => "is a multicast address",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => "is for documentation only",
        [0x2001, 0..=0x1ff, ..] => "is reserved for protocols",
        [0x3ffe, ..] => "is reserved",
        [0x2000..=0x3fff, ..] => return None,
        _ => "is not a global address",
    };
    Some(why)
}

/// The embedded IPv4 address: mapped, compatible, translated, NAT64 or 6to4.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [high, low] = match address.segments() {
        // `::` and `::1` are not IPv4-compatible addresses.
        [0, 0, 0, 0, 0, 0, 0, 0..=1] => return None,
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => [high, low],
        _ => return None,
    };
    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public() {
        let refused = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::7f00:1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.1.2.3",
            "::ffff:0:192.168.1.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "2002:a9fe:a9fe::",
            "3ffe::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ffff::1",
        ];
        for text in refused {
            assert!(why_not_public(text.parse().unwrap()).is_some(), "{text}");
        }
    }

    #[test]
    fn what_is_public() {
        let allowed = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.1.1",
            "198.17.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
            "3fff:1000::1",
        ];
        for text in allowed {
            assert_eq!(why_not_public(text.parse().unwrap()), None, "{text}");
        }
    }
}
