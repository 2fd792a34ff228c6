use super::*;
use proptest::prelude::*;
use std::time::Instant;

/// Every class but credentials.
const NUMBERS_AND_ADDRESSES: PrivacyClasses = PrivacyClasses::NONE
    .with(PrivacyClass::Email)
    .with(PrivacyClass::Phone)
    .with(PrivacyClass::Iban)
    .with(PrivacyClass::Card);

fn found(text: &str) -> Vec<(PrivacyClass, &str)> {
    let findings = find(text, PrivacyClasses::ALL);
    findings.spans.iter().map(|span| (span.class, &text[span.range.clone()])).collect()
}

fn redacted(text: &str) -> String {
    redact(text, &find(text, PrivacyClasses::ALL))
}

/// Asserts that a text holds this and nothing else, alone and within JSON, Markdown and a sentence.
fn assert_found(class: PrivacyClass, private: &str) {
    let frames =
        ["{}", "\"{}\"", "see {}.", "({})", "a, {}, b", "{\"a\":\"{}\"}", "x\\n{}\\n", "**{}**", "a\n{}\nb", "a={};"];
    for frame in frames {
        let text = frame.replace("{}", private);
        assert_eq!(found(&text), [(class, private)], "{text}");
    }
}

/// Numbers for tests in the documentation of Stripe, Adyen and PayPal.
const CARDS: &[&str] = &[
    "4242424242424242",
    "4000056655665556",
    "4111111111111111",
    "4012888888881881",
    "5555555555554444",
    "2223003122003222",
    "5200828282828210",
    "5105105105105100",
    "378282246310005",
    "371449635398431",
    "378734493671000",
    "6011111111111117",
    "6011000990139424",
    "6011981111111113",
    "36227206271667",
    "30569309025904",
    "38520000023237",
    "3566002020360505",
    "3530111333300000",
    "6200000000000005",
    "6200000000000047",
    "6205500000000000004",
    "4242 4242 4242 4242",
    "4242-4242-4242-4242",
    "4111 1111 4555 1142",
    "5577 0000 5577 0004",
    "2222 4107 4036 0010",
    "3700 0000 0000 002",
    "3782 822463 10005",
    "3569 9900 1009 5841",
    "3600 6666 3333 44",
    "3056 930902 5904",
    "6011 6011 6011 6611",
    "6445 6445 6445 6445",
    "6771 7980 2100 0008",
    "5000 5500 0000 0029",
    "6250 9470 0000 0014",
    "8171 9999 2766 0000",
];

#[test]
fn card_numbers_of_known_issuers_are_found() {
    CARDS.iter().for_each(|card| assert_found(PrivacyClass::Card, card));
}

#[test]
fn card_numbers_of_unusual_lengths_are_found_beside_a_word() {
    for number in ["6759649826438453", "6799990100000000019", "5018000000000009", "3056930009020004"] {
        for word in ["card: ", "Maestro ", "\"cardNumber\":\"", "Karte Nr. "] {
            let text = format!("{word}{number}");
            assert_eq!(found(&text), [(PrivacyClass::Card, number)], "{text}");
        }
    }
    for number in ["5018000000000009", "3056930009020004"] {
        assert_eq!(found(&format!("id {number}")), [], "{number}");
    }
}

#[test]
fn card_numbers_are_found_among_what_is_printed_beside_them() {
    for text in [
        "Visa 4242 4242 4242 4242 12/27 123",
        "1 4242 4242 4242 4242 314",
        "4242 4242 4242 4242,12/27,123",
        "[4242 4242 4242 4242, \"12/27\"]",
        "number=4242 4242 4242 4242&cvc=314",
    ] {
        assert_eq!(found(text), [(PrivacyClass::Card, "4242 4242 4242 4242")], "{text}");
    }
    let list = "4242424242424242, 5555555555554444, 378282246310005";
    assert_eq!(redacted(list), "[card removed], [card removed], [card removed]");
}

/// Examples of the IBAN registry, by country.
const IBANS: &[&str] = &[
    "AD1200012030200359100100",
    "AE070331234567890123456",
    "AL47212110090000000235698741",
    "AT611904300234573201",
    "AZ21NABZ00000000137010001944",
    "BA391290079401028494",
    "BE68539007547034",
    "BG80BNBG96611020345678",
    "BH67BMAG00001299123456",
    "BI4210000100010000332045181",
    "BR1800360305000010009795493C1",
    "BY13NBRB3600900000002Z00AB00",
    "CH9300762011623852957",
    "CR05015202001026284066",
    "CY17002001280000001200527600",
    "CZ6508000000192000145399",
    "DE89370400440532013000",
    "DJ2100010000000154000100186",
    "DK5000400440116243",
    "DO28BAGR00000001212453611324",
    "EE382200221020145685",
    "EG380019000500000000263180002",
    "ES9121000418450200051332",
    "FI2112345600000785",
    "FK88SC123456789012",
    "FO6264600001631634",
    "FR1420041010050500013M02606",
    "GB29NWBK60161331926819",
    "GE29NB0000000101904917",
    "GI75NWBK000000007099453",
    "GL8964710001000206",
    "GR1601101250000000012300695",
    "GT82TRAJ01020000001210029690",
    "HN88CABF00000000000250005469",
    "HR1210010051863000160",
    "HU42117730161111101800000000",
    "IE29AIBK93115212345678",
    "IL620108000000099999999",
    "IQ98NBIQ850123456789012",
    "IS140159260076545510730339",
    "IT60X0542811101000000123456",
    "JO94CBJO0010000000000131000302",
    "KW81CBKU0000000000001234560101",
    "KZ86125KZT5004100100",
    "LB62099900000001001901229114",
    "LC55HEMM000100010012001200023015",
    "LI21088100002324013AA",
    "LT121000011101001000",
    "LU280019400644750000",
    "LV80BANK0000435195001",
    "LY83002048000020100120361",
    "MC5811222000010123456789030",
    "MD24AG000225100013104168",
    "ME25505000012345678951",
    "MK07250120000058984",
    "MN121234123456789123",
    "MR1300020001010000123456753",
    "MT84MALT011000012345MTLCAST001S",
    "MU17BOMM0101101030300200000MUR",
    "NI45BAPR00000013000003558124",
    "NL91ABNA0417164300",
    "NO9386011117947",
    "OM810180000001299123456",
    "PK36SCBL0000001123456702",
    "PL61109010140000071219812874",
    "PS92PALS000000000400123456702",
    "PT50000201231234567890154",
    "QA58DOHB00001234567890ABCDEFG",
    "RO49AAAA1B31007593840000",
    "RS35260005601001611379",
    "RU0304452522540817810538091310419",
    "SA0380000000608010167519",
    "SC18SSCB11010000000000001497USD",
    "SD2129010501234001",
    "SE4550000000058398257466",
    "SI56263300012039086",
    "SK3112000000198742637541",
    "SM86U0322509800000000270100",
    "SO211000001001000100141",
    "ST23000100010051845310146",
    "SV62CENR00000000000000700025",
    "TL380080012345678910157",
    "TN5910006035183598478831",
    "TR330006100519786457841326",
    "UA213223130000026007233566001",
    "VA59001123000012345678",
    "VG96VPVG0000012345678901",
    "XK051212012345678906",
    "YE15CBYE0001018861234567891234",
];

fn in_groups(number: &str, space: &str) -> String {
    number.as_bytes().chunks(4).map(String::from_utf8_lossy).collect::<Vec<_>>().join(space)
}

#[test]
fn account_numbers_of_the_registry_are_found() {
    for iban in IBANS {
        assert_found(PrivacyClass::Iban, iban);
        assert_found(PrivacyClass::Iban, &in_groups(iban, " "));
        assert_found(PrivacyClass::Iban, &in_groups(iban, "\u{a0}"));
        assert_found(PrivacyClass::Iban, &iban.to_lowercase());
    }
}

#[test]
fn account_numbers_with_a_mistake_are_not_found() {
    for iban in IBANS {
        let last = if iban.ends_with('0') { "1" } else { "0" };
        let other = format!("{}{last}", &iban[..iban.len() - 1]);
        let mixed = format!("{}{}", &iban[..1], iban[1..].to_lowercase());
        for text in [other, format!("{iban}0"), format!("X{iban}"), mixed, in_groups(iban, "  ")] {
            let ibans = find(&text, PrivacyClasses::NONE.with(PrivacyClass::Iban));
            assert_eq!(ibans.spans, [], "{text}");
        }
    }
}

/// Numbers as ITU-T E.123 and E.164, RFC 3966 and national plans write them. Most lie in ranges reserved for examples.
const INTERNATIONAL: &[&str] = &[
    "+22 607 123 4567",
    "+1-201-555-0123",
    "+358-555-1234567",
    "+1 415 555 0100",
    "+1 (415) 555-0100",
    "+1.415.555.0100",
    "+1.4155550100",
    "+14155552671",
    "+442071838750",
    "+551155256325",
    "+44 20 7946 0018",
    "+44 (0)20 7946 0018",
    "+49 30 23125 000",
    "+49 (0) 30 / 23125-000",
    "(+49) 30 23125 000",
    "+33 1 99 00 12 34",
    "+33199001234",
    "+39 06 1234 5678",
    "+41 44 668 18 00",
    "+45 32 12 34 56",
    "+7 495 123-45-67",
    "+81 3-1234-5678",
    "+86 138 0013 8000",
    "+91 98765 43210",
    "+353 1 234 5678",
    "+376 312 345",
    "+61 491 570 156",
];

#[test]
fn international_telephone_numbers_are_found() {
    // The country code 22 is that of the example in E.123 and has never been assigned.
    for number in INTERNATIONAL.iter().skip(1) {
        assert_found(PrivacyClass::Phone, number);
    }
    assert_eq!(found(INTERNATIONAL[0]), []);
}

#[test]
fn national_telephone_numbers_are_found_beside_a_word() {
    for (text, number) in [
        ("Tel. 030 23125 000", "030 23125 000"),
        ("Tel.: (030) 23125-000", "(030) 23125-000"),
        ("Telefon: 030/23125000", "030/23125000"),
        ("Telefonnummer 0171 39200 00", "0171 39200 00"),
        ("tél : 01 99 00 12 34", "01 99 00 12 34"),
        ("Tél. 01.99.00.12.34", "01.99.00.12.34"),
        ("phone: 555-123-4567", "555-123-4567"),
        ("PHONE NUMBER IS 0118 496 0000", "0118 496 0000"),
        ("{\"phoneNumber\":\"02079460018\"}", "02079460018"),
        ("{\"home_phone\": \"020 7946 0018\"}", "020 7946 0018"),
        ("homePhone=02079460018", "02079460018"),
        ("mobile 07700 900123", "07700 900123"),
        ("Fax 1-800-555-0199", "1-800-555-0199"),
        ("call 212-555-0123 now", "212-555-0123"),
        ("teléfono 912 345 678", "912 345 678"),
        ("тел. 8 (495) 123-45-67", "8 (495) 123-45-67"),
        ("电话：010-12345678", "010-12345678"),
        ("Phone:\n  0049 30 23125000", "0049 30 23125000"),
        ("tel:+376312345", "+376312345"),
        ("\"phone\":\"4915112345678\"", "4915112345678"),
        ("Phone 00491711234567", "00491711234567"),
        ("Mobile: +49 (0)171/3920000", "+49 (0)171/3920000"),
        ("Phone 415-555-0100x12", "415-555-0100"),
    ] {
        assert_eq!(found(text), [(PrivacyClass::Phone, number)], "{text}");
    }
}

#[test]
fn american_numbers_in_brackets_need_no_word() {
    for number in ["(415) 555-0100", "(415)555-0100", "(415) 555.0100", "(415) 555 0100"] {
        for text in [number.to_owned(), format!("a {number}, b"), format!("\"{number}\"")] {
            assert_eq!(found(&text), [(PrivacyClass::Phone, number)], "{text}");
        }
    }
}

/// Addresses in the forms of RFC 5321, RFC 5322, RFC 6531 and of the pages on them.
const EMAILS: &[&str] = &[
    "ann@host.org",
    "jdoe@machine.tld",
    "fred.foonly@west.bar-host.com",
    "simple@sub.domain.co.uk",
    "disposable.style.email.with+symbol@host.com",
    "fully-qualified_domain@host.com",
    "x@host.museum",
    "1234567890@host.com",
    "ann@163.com",
    "ann@2333.moe",
    "ANN@HOST.ORG",
    "ann@bücher.de",
    "ann@xn--bcher-kva.de",
    "user@host.xn--p1ai",
    "müller@host.de",
    "коля@пример.рф",
    "θσερ@εχαμπλε.ψομ",
    "ann@例え.テスト",
    "ann+12345@users.noreply.github.com",
    "12345+ann@users.noreply.github.com",
    "o.brien@host.ie",
];

#[test]
fn email_addresses_are_found() {
    for email in EMAILS {
        assert_found(PrivacyClass::Email, email);
        for text in [format!("<{email}>"), format!("mailto:{email}?subject=x"), format!("Ann <{email}>: hi")] {
            assert_eq!(found(&text), [(PrivacyClass::Email, *email)], "{text}");
        }
    }
}

#[test]
fn email_addresses_are_found_without_what_is_beside_them() {
    for (text, email) in [
        ("to:\\nann@host.org\\nb", "ann@host.org"),
        ("\\u003cann@host.org\\u003e", "ann@host.org"),
        ("to=%3Cann@host.org%3E", "ann@host.org"),
        ("...ann@host.org...", "ann@host.org"),
        ("--ann@host.org--", "ann@host.org"),
        ("请联系ann@host.org谢谢", "ann@host.org"),
        ("ann@host.org:hunter", "ann@host.org"),
        ("ann@host.org, and", "ann@host.org"),
        ("sip:ann@host.org;x", "ann@host.org"),
    ] {
        assert_eq!(found(text).first(), Some(&(PrivacyClass::Email, email)), "{text}");
    }
}

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

#[test]
fn tables_of_long_numbers_hold_no_cards() {
    assert_eq!(found("844155944689303, 344155944689303, 615279846169038"), []);
    assert_eq!(found("[844155944689303,\n  344155944689303]"), []);
    assert_eq!(found("[344155944689303,\n  844155944689303]"), []);
    assert_eq!(found("[844155944689303, \"card\", 344155944689303]").len(), 1);
}

#[test]
fn credentials_are_replaced_with_their_kind() {
    assert_eq!(redacted("key AKIAABCDEFGHIJKLMNOP."), "key [credential removed: aws-access-key-id].");
    let text = "ann@host.org AKIAABCDEFGHIJKLMNOP 4242424242424242";
    let classes: Vec<_> = found(text).into_iter().map(|(class, _)| class).collect();
    assert_eq!(classes, [PrivacyClass::Email, PrivacyClass::Credential, PrivacyClass::Card]);
}

#[test]
fn redaction_leaves_everything_else_in_place() {
    let text = "Ann <ann@host.org>, +49 30 23125 000,\nIBAN: DE89 3704 0044 0532 0130 00; Visa 4242-4242-4242-4242 é";
    let expected = "Ann <[email removed]>, [phone removed],\nIBAN: [iban removed]; Visa [card removed] é";
    assert_eq!(redacted(text), expected);
    assert_eq!(redacted("nothing"), "nothing");
    assert_eq!(redacted("{\"a\":\"x\\nann@host.org\"}"), "{\"a\":\"x\\n[email removed]\"}");
}

#[test]
fn a_placeholder_never_becomes_the_text_of_a_link() {
    assert_eq!(redacted("!+4930123456 (a) +4930123456[a]"), "![phone removed] (a) [phone removed] [a]");
    assert_eq!(redacted("[ann@host.org](mailto:ann@host.org)"), "[[email removed]](mailto:[email removed])");
    assert_eq!(redacted("ann@host.org: hi"), "[email removed] : hi");
}

#[test]
fn only_the_classes_of_the_set_are_found() {
    let text = "ann@host.org +49 30 23125 000 DE89370400440532013000 4242424242424242 AKIAABCDEFGHIJKLMNOP";
    assert!(find(text, PrivacyClasses::NONE).spans.is_empty());
    for class in PrivacyClass::ALL {
        let classes: Vec<_> = find(text, [class].into_iter().collect()).spans.iter().map(|span| span.class).collect();
        assert_eq!(classes, [class]);
    }
    assert_eq!(find(text, PrivacyClasses::ALL).spans.len(), 5);
}

#[test]
fn sets_hold_the_classes_they_are_made_of() {
    assert!(PrivacyClasses::NONE.is_empty() && !PrivacyClasses::ALL.is_empty());
    for class in PrivacyClass::ALL {
        let set = PrivacyClasses::NONE.with(class);
        assert!(PrivacyClass::ALL.iter().all(|other| set.contains(*other) == (*other == class)));
        assert!(PrivacyClasses::ALL.contains(class));
        assert_eq!(serde_json::to_value(class).unwrap(), class.word());
    }
}

#[test]
fn placeholders_are_not_searched_and_forged_ones_are() {
    for text in
        ["[email removed]", "[credential removed: aws-access-key-id]", "password=[credential removed: npm-token]"]
    {
        assert_eq!(found(text), [], "{text}");
    }
    let forged = "[credential removed: AKIAABCDEFGHIJKLMNOP]";
    assert_eq!(redacted(forged), "[credential removed: [credential removed: aws-access-key-id]]");
    // Letters beside a placeholder are those of what it replaced.
    assert_eq!(found("[email removed]4242424242424242"), []);
    assert_eq!(found("[email removed] 4242424242424242").len(), 1);
}

#[test]
fn bounds_are_told() {
    let long = " ".repeat(MAX_TEXT + 1);
    assert!(find(&long, PrivacyClasses::ALL).is_incomplete);
    let many = "ann@host.org ".repeat(MAX_SPANS + 1);
    let findings = find(&many, NUMBERS_AND_ADDRESSES);
    assert!(findings.is_incomplete);
    assert_eq!(findings.spans.len(), MAX_SPANS);
    let enough = find(&many[13..], NUMBERS_AND_ADDRESSES);
    assert!(!enough.is_incomplete);
    assert_eq!(enough.spans.len(), MAX_SPANS);
}

#[test]
fn spans_that_do_not_fit_a_text_are_left_out() {
    let findings = find("é ann@host.org", PrivacyClasses::ALL);
    assert_eq!(redact("ééééé", &findings), "ééééé");
    assert_eq!(redact("short", &findings), "short");
}

/// Inputs that make a careless search quadratic. Each has 400 KB.
#[test]
fn hostile_repetitions_take_linear_time() {
    let pieces = [
        "@",
        "a@",
        "a@b",
        "a.@b.",
        "a@b.co",
        "a@b.co ",
        ".",
        "+",
        "+4",
        "+49",
        "+49 30 ",
        "+4930123456",
        "1",
        "1 ",
        "12-",
        "4242 ",
        "4242",
        "4242-",
        "(415) ",
        "(",
        "tel ",
        "tel 1",
        "DE89",
        "DE89 ",
        "DE89370400440532013000",
        "a1",
        "aé1",
        " removed",
        "[email removed",
        "[email removed]",
        "[credential removed: ",
        "[",
        "phone(1)2",
        "\u{a0}1",
        "é@é.é",
        "4242424242424242,",
        "4242424242424241, ",
        "+4930123456+",
        "a@b.co+4930123456",
    ];
    for piece in pieces {
        let text = piece.repeat(400_000 / piece.len());
        let start = Instant::now();
        let _ = find(&text, NUMBERS_AND_ADDRESSES);
        assert!(start.elapsed().as_secs() < 5, "{piece:?} took {:?}", start.elapsed());
    }
}

/// Fragments that combine into private data, parts of it and placeholders.
fn fragments() -> impl Strategy<Value = String> {
    let pieces = [
        "@",
        ".",
        "+",
        "-",
        " ",
        "(",
        ")",
        ":",
        "/",
        ",",
        "[",
        "]",
        "\\n",
        "%",
        "\u{a0}",
        "é",
        "例",
        "a",
        "ann",
        "host.org",
        "1",
        "49",
        "4242",
        "4242424242424242",
        "555",
        "0100",
        "(415)",
        "30 23125 000",
        "+49",
        "tel ",
        "phone: ",
        "card ",
        "DE89",
        "370400440532013000",
        "3704 0044 0532 0130 00",
        "ann@host.org",
        "x@y.co",
        "+4930123456",
        " removed",
        "[email removed]",
        "[card removed]",
        "[credential removed: npm-token]",
        "[credential removed: ",
        "password=",
        "AKIAABCDEFGHIJKLMNOP",
        "Bearer ",
        "hunter2hunter2",
        "https://",
        "\"",
        "=",
    ];
    let all = pieces.iter().chain(CARDS).chain(IBANS).chain(INTERNATIONAL).chain(EMAILS).copied().collect::<Vec<_>>();
    let small = proptest::sample::select(pieces.to_vec());
    let any = proptest::sample::select(all);
    proptest::collection::vec(prop_oneof![3 => small, 1 => any], 0..24).prop_map(|parts| parts.concat())
}

/// Asserts what holds for the findings of every text.
fn assert_sound(text: &str, classes: PrivacyClasses) {
    let findings = find(text, classes);
    assert!(!findings.is_incomplete);
    let mut end = 0;
    for span in &findings.spans {
        assert!(end <= span.range.start && span.range.start < span.range.end, "{text:?}: {findings:?}");
        assert!(text.get(span.range.clone()).is_some(), "{text:?}: {findings:?}");
        assert!(classes.contains(span.class));
        end = span.range.end;
    }
    let once = redact(text, &findings);
    let again = find(&once, classes);
    assert!(again.spans.is_empty(), "{text:?} becomes {once:?}, then {again:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_changes_nothing_more(text in fragments()) {
        assert_sound(&text, PrivacyClasses::ALL);
        assert_sound(&text, NUMBERS_AND_ADDRESSES);
    }

    #[test]
    fn any_text_can_be_searched(text in "\\PC{0,60}|(?s:.{0,60})|[0-9 +().@-]{0,80}") {
        assert_sound(&text, PrivacyClasses::ALL);
    }

    /// Text of letters and common punctuation holds nothing private, in any script.
    #[test]
    fn words_are_not_found(text in "[\\p{L} .,;!?\n\t]{0,60}") {
        prop_assert_eq!(find(&text, NUMBERS_AND_ADDRESSES).spans, []);
    }

    #[test]
    fn private_data_is_found_between_words(before in "[a-z]{1,8} ", card in proptest::sample::select(CARDS), after in " [a-z]{1,8}") {
        let text = format!("{before}{card}{after}");
        prop_assert_eq!(found(&text), [(PrivacyClass::Card, card)]);
    }
}
