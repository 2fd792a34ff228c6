//! Both profiles, the encoder and the reading of JSON.

use super::*;
use signalbox_wire::ScanErrorKind;
use signalbox_wire::hex::hex;

fn two(text: &str) -> String {
    hex(&json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn one(text: &str) -> String {
    hex(&json_as(Profile::One, text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Proves P-17.
#[test]
fn keys_are_in_the_order_of_the_profile_however_they_came() {
    for text in [r#"{"aa":1,"b":2,"a":3,"":4}"#, r#"{"b":2,"":4,"aa":1,"a":3}"#] {
        assert_eq!(two(text), "a4600461610361620262616101", "encoded keys: a shorter one first");
        assert_eq!(one(text), "a4600461610362616101616202", "texts: b comes after aa");
    }
    assert_eq!(
        two(r#"{"z":{"b":1,"a":2},"y":{"b":[{"d":1,"c":2}]}}"#),
        "a26179a1616281a261630261640161\
        7aa2616102616201"
            .replace(char::is_whitespace, "")
    );
}

/// Proves P-18.
#[test]
fn integers_have_the_smallest_form() {
    for (text, expected) in [
        ("0", "00"),
        ("23", "17"),
        ("24", "1818"),
        ("255", "18ff"),
        ("256", "190100"),
        ("65535", "19ffff"),
        ("65536", "1a00010000"),
        ("4294967295", "1affffffff"),
        ("4294967296", "1b0000000100000000"),
        ("18446744073709551615", "1bffffffffffffffff"),
        ("-1", "20"),
        ("-24", "37"),
        ("-25", "3818"),
        ("-9223372036854775808", "3b7fffffffffffffff"),
    ] {
        assert_eq!(two(text), expected, "{text}");
        assert_eq!(one(text), expected, "{text}");
    }
}

/// Proves P-19.
#[test]
fn floats_become_text_with_eight_decimals() {
    for (text, expected) in [
        ("1.0", "1.00000000"),
        ("1.1", "1.10000000"),
        ("1.1000000000000001", "1.10000000"),
        ("1e-9", "0.00000000"),
        ("-0.0", "-0.00000000"),
        ("-0", "-0.00000000"),
        ("0.125000005", "0.12500000"),
        ("1e22", "10000000000000000000000.00000000"),
    ] {
        assert_eq!(one(text), one(&format!("{expected:?}")), "{text}");
    }
}

/// Proves P-20 and P-21.
#[test]
fn binary_data_and_moments_are_tagged() {
    let written = |profile| {
        let mut encoder = Encoder::new(profile);
        encoder
            .value()
            .array(|array| {
                array.item().bytes(b"\x01\x02");
                array.item().time(1_000_000_000);
                array.item().time(-1);
                Ok(())
            })
            .unwrap();
        hex(&encoder.finish().unwrap())
    };
    assert_eq!(written(Profile::One), "83d818420102c11a3b9aca00c120");
    assert_eq!(written(Profile::Two), "834201021a3b9aca0020");
}

#[test]
fn floats_have_the_shortest_form_and_stay_apart_from_integers() {
    for (text, expected) in [
        ("1.0", "f93c00"),
        ("10e-1", "f93c00"),
        ("-0", "f98000"),
        ("0.0", "f90000"),
        ("1.5", "f93e00"),
        ("65504.0", "f97bff"),
        ("100000.0", "fa47c35000"),
        ("3.4028234663852886e+38", "fa7f7fffff"),
        ("1.1", "fb3ff199999999999a"),
        ("1e300", "fb7e37e43c8800759c"),
        ("5.960464477539063e-8", "f90001"),
        ("18446744073709551616.0", "fa5f800000"),
    ] {
        assert_eq!(two(text), expected, "{text}");
    }
    assert_ne!(two("1"), two("1.0"));
}

#[test]
fn long_arrays_and_maps_have_their_length_in_front() {
    let array = format!("[{}]", vec!["0"; 300].join(","));
    assert_eq!(two(&array), format!("99012c{}", "00".repeat(300)));
    let members: Vec<String> = (0..24).rev().map(|n| format!("\"{n:02}\":[{n}]")).collect();
    let expected: String =
        (0..24).map(|n| format!("62{}81{}", hex(format!("{n:02}").as_bytes()), two(&n.to_string()))).collect();
    assert_eq!(two(&format!("{{{}}}", members.join(","))), format!("b818{expected}"));
}

#[test]
fn what_does_not_survive_is_refused() {
    use EncodeError as E;
    for (text, expected) in [
        ("18446744073709551616", E::IntegerTooLarge("18446744073709551616".to_owned())),
        ("-9223372036854775809", E::IntegerTooLarge("-9223372036854775809".to_owned())),
        ("1e-400", E::NumberLost("1e-400".to_owned())),
        ("-0.1e-330", E::NumberLost("-0.1e-330".to_owned())),
    ] {
        assert_eq!(json(text.as_bytes()), Err(expected), "{text}");
    }
    for (text, expected) in [
        (r#"{"a":1,"\u0061":2}"#, ScanErrorKind::DuplicateKey),
        (r#""\ud800""#, ScanErrorKind::LoneSurrogate),
        ("1e400", ScanErrorKind::NumberOutOfRange),
        ("", ScanErrorKind::UnexpectedEnd),
        ("[1,]", ScanErrorKind::UnexpectedByte),
        ("NaN", ScanErrorKind::UnexpectedByte),
        (&"[".repeat(128), ScanErrorKind::TooDeep),
    ] {
        let error = json(text.as_bytes()).unwrap_err();
        assert!(matches!(&error, E::Json(error) if error.kind == expected), "{text}: {error}");
    }
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for profile in [Profile::One, Profile::Two] {
            assert!(matches!(Encoder::new(profile).value().float(float), Err(E::NotFinite(_))), "{float}");
        }
    }
}

#[test]
fn a_caller_that_writes_too_little_or_too_much_is_told() {
    let built = |build: &dyn Fn(&mut Encoder) -> Result<(), EncodeError>| {
        let mut encoder = Encoder::new(Profile::Two);
        build(&mut encoder)?;
        encoder.finish()
    };
    assert_eq!(built(&|_| Ok(())), Err(EncodeError::NoValue));
    assert_eq!(
        built(&|encoder| {
            let _ = encoder.value();
            Ok(())
        }),
        Err(EncodeError::NoValue)
    );
    let twice = |encoder: &mut Encoder| {
        encoder.value().null();
        encoder.value().null();
        Ok(())
    };
    assert_eq!(built(&twice), Err(EncodeError::ManyValues));
    let key = |map: &mut MapEncoder<'_>| {
        let _ = map.entry("a");
        Ok(())
    };
    assert_eq!(built(&|encoder| encoder.value().map(key)), Err(EncodeError::NoValue));
    let items = |array: &mut ArrayEncoder<'_>| {
        let _ = array.item();
        array.item().null();
        Ok(())
    };
    assert_eq!(built(&|encoder| encoder.value().array(items)), Err(EncodeError::NoValue));
    let same = |map: &mut MapEncoder<'_>| {
        map.entry("b").null();
        map.entry("a").null();
        map.entry("b").bool(true);
        Ok(())
    };
    assert_eq!(built(&|encoder| encoder.value().map(same)), Err(EncodeError::DuplicateKey("b".to_owned())));
}

#[test]
fn an_error_that_the_caller_swallows_leaves_no_half_written_value() {
    let mut encoder = Encoder::new(Profile::Two);
    let written = encoder.value().map(|map| {
        let _ = map.entry("a").json(b"[1,1e-999]");
        Ok(())
    });
    assert_eq!(written, Err(EncodeError::NoValue));
}
