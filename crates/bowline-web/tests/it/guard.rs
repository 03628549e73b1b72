//! The guard against forged destinations: every spelling that has ever fooled one.

use bowline_web::{Reach, WebError};

use crate::world::{Server, direct, get};

/// Hosts that are, or stand for, addresses that are not public.
const REFUSED: &[&str] = &[
    // Loopback as four numbers, and with fewer.
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "127.1.",
    "127.0.0.1.",
    // In one number: decimal, octal, hexadecimal.
    "2130706433",
    "2130706433.",
    "017700000001",
    "0x7f000001",
    "0x7F000001",
    "0X7f000001",
    "0x7f000001.",
    "00017700000001",
    "0x000000007f000001",
    // In mixed notation.
    "0x7f.0.0.1",
    "0x7f.1",
    "0177.0.0.1",
    "0177.1",
    "0177.0.0.01",
    "0x7f.0x0.0x0.0x1",
    "127.0x0.1",
    "127.0.0x1",
    "127.000.000.001",
    "127.0.0.0x1",
    "00177.0.0.1",
    "0x7f.0.1",
    "0X7F.1",
    "127.0.01",
    "127.00.00.01",
    "0x7f.0x1",
    "0177.0x1",
    "127.65535",
    "127.0xffff",
    "127.16777215",
    // This host.
    "0.0.0.0",
    "0",
    "0.",
    "0.0",
    "0.0.0",
    "0x0",
    "0x",
    "00",
    "000.000.000.000",
    "0x0.0x0.0x0.0x0",
    "0.1.2.3",
    "16777215",
    "0.0.0.0.",
    "0x.0x.0x.0x",
    // Private networks.
    "10.0.0.1",
    "10.1",
    "10.255.255.255",
    "167772161",
    "0x0a000001",
    "012.0.0.1",
    "0xa.0.0.1",
    "0xa.1",
    "172.16.0.1",
    "172.31.255.255",
    "2886729729",
    "0xac100001",
    "0254.020.0.1",
    "172.1048577",
    "192.168.0.1",
    "192.168.1",
    "192.168.65535",
    "3232235521",
    "0xc0a80001",
    "0300.0250.0.1",
    "0xc0.0xa8.1",
    "192.11010049",
    // Link-local, with the metadata services of clouds.
    "169.254.169.254",
    "169.254.169.254.",
    "2852039166",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",
    "025177524776",
    "169.254.43518",
    "169.16689662",
    "0xa9.254.0251.254",
    "169.254.170.2",
    // Carriers, benchmarks, documentation, protocols, multicast, broadcast.
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.254",
    "1681915905",
    "198.18.0.1",
    "198.19.255.254",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.0.0.1",
    "192.0.0.192",
    "192.88.99.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    "0xffffffff",
    "037777777777",
    // IPv6 loopback, unspecified.
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::0001]",
    "[0::1]",
    "[0::0:1]",
    "[::]",
    "[0::0]",
    "[0:0:0:0:0:0:0:0]",
    "[::0]",
    "[::0.0.0.1]",
    "[::0.0.0.0]",
    // IPv6 that carries IPv4.
    "[::ffff:127.0.0.1]",
    "[::FFFF:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:7f00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[0:0:0:0:0:FFFF:7F00:1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:a00:1]",
    "[::ffff:192.168.0.1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::ffff:0.0.0.0]",
    "[::ffff:0:0]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::10.0.0.1]",
    "[::169.254.169.254]",
    "[::ffff:0:127.0.0.1]",
    "[::ffff:0:7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[0064:ff9b:0::169.254.169.254]",
    "[64:ff9b:1::1]",
    "[64:ff9b:1::127.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001::1]",
    "[2002:a00:1::]",
    "[2002:c0a8:1::]",
    "[2002:a9fe:a9fe::]",
    "[2002:e000:1::]",
    "[2001:0:7f00:1::]",
    "[2001::1]",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
    // IPv6 of its own.
    "[fc00::1]",
    "[fd00::1]",
    "[fd00:ec2::254]",
    "[fdff:ffff::1]",
    "[fe80::1]",
    "[fe80::a9fe:a9fe]",
    "[febf::1]",
    "[fec0::1]",
    "[feff::1]",
    "[ff02::1]",
    "[ff0e::1]",
    "[2001:db8::1]",
    "[2001:DB8::1]",
    "[2001:10::1]",
    "[2001:20::1]",
    "[2001:2::1]",
    "[3fff::1]",
    "[3ffe::1]",
    "[100::1]",
    "[5f00::1]",
    "[4000::1]",
    "[8000::1]",
    "[::2]",
    "[1::1]",
    // Names that are never public.
    "localhost",
    "LOCALHOST",
    "LocalHost",
    "localhost.",
    "x.localhost",
    "a.b.localhost.",
    "localhost.localdomain",
    "printer.local",
    "metadata.google.internal",
    "metadata.google.internal.",
    "METADATA.GOOGLE.INTERNAL",
    "router.home.arpa",
    "internal",
    "host.docker.internal",
    // Numbers that are not addresses must not be left to a resolver that thinks otherwise.
    "256.0.0.1",
    "127.0.0.256",
    "4294967296",
    "0x100000000",
    "1.2.3.4.5",
    "127.0.0.1.2",
    "0x7g.1",
    "127.0.0.08",
    "08",
    "1.16777216",
    "040000000000",
    "127.0.0.0x",
    "x.1",
    "example.1",
    "example.0x1",
    "999999999999999999999",
    "foo.09",
    // Characters that others decode or drop.
    "%31%32%37.0.0.1",
    "127.0.0.1%2f",
    "127.0.0.1%00.example.com",
    "localhos%74",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "127.0.0.1\\@example.com",
    "127..0.1",
    ".127.0.0.1",
    "127.0.0.1..",
    "[::1",
    "[::1%25lo]",
    "[fe80::1%25eth0]",
    "[::1%lo]",
    "[127.0.0.1]",
    "[::ffff:127.1]",
    "[::1].example.com",
    "::1",
    "[]",
    "[v1.::1]",
    // Users in front, which fool whoever reads to the first `@`.
    "example.com@127.0.0.1",
    "example.com:80@127.0.0.1",
    "a@b@127.0.0.1",
    "user:pass@localhost",
    "127.0.0.1@example.com",
    "@127.0.0.1",
    "example.com%40127.0.0.1",
];

#[tokio::test]
async fn no_spelling_gets_through() {
    // Would answer on any of the loopback spellings.
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    let port = server.address.port();
    let web = direct().reach(Reach::public()).build().unwrap();
    let mut read = 0;
    for scheme in ["http", "https"] {
        for host in REFUSED {
            // What is not a URL cannot be requested.
            let url = format!("{scheme}://{host}:{port}/");
            let Ok(request) = http::Request::get(&url).body(bytes::Bytes::new()) else { continue };
            read += 1;
            let error = web.send(request).await.expect_err(&url);
            let is_refusal = matches!(error, WebError::Forbidden { .. } | WebError::Url { .. });
            assert!(is_refusal, "{url}: {error:?}");
        }
    }
    assert!(REFUSED.len() >= 200 && read >= 2 * 200, "{} {read}", REFUSED.len());
    assert!(server.heads().is_empty());
}

#[tokio::test]
async fn what_is_excepted_is_reached_and_nothing_beside_it() {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
    let other = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno").await;
    let reach = Reach::Public { also: vec![server.address.to_string().parse().unwrap()] };
    let web = direct().build().unwrap().with_reach(reach);
    assert_eq!(web.fetch(get(&server.url("/"))).await.unwrap().body(), "hi");
    let error = web.fetch(get(&other.url("/"))).await.unwrap_err();
    assert!(matches!(error, WebError::Forbidden { address: Some(_), .. }), "{error:?}");
    assert!(other.heads().is_empty());
}

#[tokio::test]
async fn another_reach_does_not_share_connections() {
    let server = Server::with(|mut stream| async move {
        use tokio::io::AsyncWriteExt;
        // Left open, to be used again by whoever may.
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
        std::future::pending::<()>().await;
    })
    .await;
    let web = direct().build().unwrap();
    assert_eq!(web.fetch(get(&server.url("/"))).await.unwrap().body(), "hi");
    let error = web.with_reach(Reach::public()).fetch(get(&server.url("/"))).await.unwrap_err();
    assert!(matches!(error, WebError::Forbidden { .. }), "{error:?}");
}
