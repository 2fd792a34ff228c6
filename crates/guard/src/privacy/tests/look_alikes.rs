//! Texts in which nothing may be found.

use super::*;

/// Texts that resemble private data and are none.
const LOOK_ALIKES: &[&str] = &[
    // Signs of addresses in code, packages, hosts and files.
    "user@localhost and root@server.local, admin@db.internal",
    "@decorators @app.route('/') @Override @media.print",
    "@scope/pkg@1.2.3 and @types/node@20.1.0",
    "pkg@1.0.0 pkg@^1.2 lib@v2.3.4-beta.rc react@18.2.0-next.co",
    "actions/checkout@v4 uses: a/b@main image@sha256:0123abcd",
    "git@github.com:org/repo.git git@gitlab.host.org:a/b",
    "ssh://git@github.com/a/b https://ann@host.org/x postgres://ann@db.host.org/x",
    "scp a.txt ann@host.org:/srv ann@host.org:~/x ann@host.org:dir/file",
    "image@2x.png icon@3x.webp a@b.svg getty@tty1.service user@1000.slice",
    "return@forEach.x this@Main.finish() a@b.T x@y.copy()",
    "ann@example.com bob@mail.example.org x@sub.example.net a@b.test c@d.invalid e@f.example",
    "noreply@github.com no-reply@host.org donotreply@host.org",
    "chacha20-poly1305@openssh.com curve25519-sha256@libssh.org",
    "@ann@mastodon.social a@b ann@host ann@.org @host.org ann@@host.org",
    "${user}@host.com {name}@host.com <user>@host.com $x@host.com",
    "ann@-host.org ann@host-.org ann@host..org ann@host.o ann@127.0.0.1 a@1.2",
    // Times, dates and offsets.
    "1700000000 1700000000000 1700000000000000 1700000000000000000",
    "2026-11-19T20:15:00+0100 20261119201500 2026-11-19 19.11.2026 11/19/2026",
    "+9999-12-31 +262142-12-31 +002026-11-19T00:00:00Z",
    "phone call 2024-01-01, tel 01.02.2024, Fax 20240101, mobile 19-11-2026",
    "call at 1700000000, phone 1700000000, tel 1700000000000, phone timestamp 1234567890, mobile version 12.34.5678",
    // Identifiers.
    "550e8400-e29b-41d4-a716-446655440000 41111111-1111-4111-8111-111111111111",
    "4111-1111-1111-1111-1111-1111 12345678-1234-1234-1234-123456789012",
    "d670460b4b4aece5915caf5c68d12f560a9fe3e4 4111111111111111abcdef0123456789abcdef01",
    "4242424242424242a a4242424242424242 _4242424242424242 4242424242424242_1 0x4242424242424242",
    "{\"id\":1234567890123456,\"user\":1152921504606846976,\"n\":4242424242424241}",
    "{\"phone_number_id\":\"106540352242922\",\"phoneId\":4155550100,\"microphone\":4155550100}",
    "orders 4242424242424241, 5555555555554445, 378282246310006 and 6011111111111118",
    "/users/4242424242424242/posts 4242424242424242/1 #4242424242424242 4242424242424242-1",
    "IMEI 490154203237518, 353918057000000; ICCID 8991101200003204510",
    "ISBN 978-3-16-148410-0, 9783161484100; EAN 4006381333931; ISSN 2049-3630",
    "arn:aws:iam::123456789012:role/x 123-4567890-1234567",
    "DE1234567890 DE00000000000000000066 GB29NWBK60161331926818 de45ab de12cd34ef56ab78cd90",
    "VAT DE136695976 SE556012579001 NL123456789B01 ATU12345678",
    "fr1420041010050500013m0260 ab12cd34ef56ab78cd90ef12ab34cd56ef78ab90",
    // Numbers.
    "0.4242424242424242 4242424242424242.5 4.242424242424242e15 -4242424242424242 $4242424242424242",
    "0000000000000000 1111111111111111 4444444444444444 0000 0000 0000 0000",
    "4242 4242 4242 4242 4242 4242 4242 4242",
    "1234 4242 4242 4242 4242 4242 4242 5678",
    "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6\n0 1 0 1 1 0 0 1 0 1 1 0",
    "x + 12345678, 1e+12345678901, a+4915123456789, 5+4915123456789, +2147483647, ++4915123456789",
    "+12345678 +100000000 +1 2 3 4 5 6 7 8 +0049 +49.1234567 +40.20361-075.00417/ +0155550100",
    "127.0.0.1 192.168.100.100 phone 192.168.100.100 tel 10.20.30.40 1.2.3.4567890",
    "(123) 456-7890 f(415) 555-0100 (415) 155-0100 (2024) 555-0100 (415)-55-0100",
    "v1.20.300 phone v1.20.3000000 tel 0.12345678 call 12345678",
    "iPhone 12345678, telemetry 5551234567, hotel 5551234567, intel 5551234567, recall 555-123-4567",
    // Encoded data.
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=",
    "U2VuZC+4915123456789/abc+4915123456789==",
    "%2B4915123456789%40 \\u0040 &#64; 4242%2042",
];

#[test]
fn look_alikes_are_not_found() {
    for text in LOOK_ALIKES {
        assert_eq!(found(text), [], "{text}");
        for word in text.split(' ') {
            assert_eq!(found(word), [], "{word}");
        }
    }
}
