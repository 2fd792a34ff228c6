//! Telephone numbers and email addresses.

use super::*;

/// Numbers as ITU-T E.123 and E.164, RFC 3966 and national plans write them. Most lie in ranges reserved for examples.
pub(super) const INTERNATIONAL: &[&str] = &[
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
pub(super) const EMAILS: &[&str] = &[
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
