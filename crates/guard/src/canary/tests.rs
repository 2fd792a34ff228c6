use super::*;
use proptest::prelude::*;

const KINDS: [CanaryKind; 4] = [CanaryKind::ApiKey, CanaryKind::Email, CanaryKind::Url, CanaryKind::Name];

fn key() -> CanaryKey {
    CanaryKey::new([7; 32])
}

fn random(seed: u64) -> [u8; 16] {
    u128::from(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()
}

fn base64_of_hex(text: &str) -> (String, String) {
    let hex = signalbox_wire::hex::hex(text.as_bytes());
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let encode = |bytes: &[u8]| -> String {
        let bits = bytes.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - bytes.len()));
        (0..=bytes.len()).map(|at| char::from(digits[(bits >> (18 - 6 * at) & 63) as usize])).collect()
    };
    (text.as_bytes().chunks(3).map(encode).collect(), hex.as_bytes().chunks(3).map(encode).collect())
}

#[test]
fn values_look_like_their_kind() {
    let make = |kind, label: &str| Canary::new(kind, random(5), label, &key()).value().to_owned();
    assert!(make(CanaryKind::ApiKey, "Billing (prod)").starts_with("key_billingprod_"));
    assert!(
        make(CanaryKind::Email, "hr").starts_with("hr.")
            && make(CanaryKind::Email, "hr").ends_with("@mail.example.net")
    );
    assert!(make(CanaryKind::Url, "").starts_with("https://internal.example.net/share/"));
    let name = make(CanaryKind::Name, "ignored");
    let lengths: Vec<usize> = name.split(' ').map(str::len).collect();
    assert!(lengths == [8, 8, 8] && name.split(' ').all(|word| word.starts_with(char::is_uppercase)), "{name}");
    assert!(make(CanaryKind::ApiKey, "sk_live").starts_with("key_sklive_"));
}

#[test]
fn every_canary_is_found_in_every_form() {
    let key = key();
    for kind in KINDS {
        for seed in 1..20 {
            let canary = Canary::new(kind, random(seed), "payroll", &key);
            let value = canary.value();
            let text = format!("é say {value}, twice");
            let matches = find(&text, &key);
            assert!(matches.len() == 1 && matches[0].id == canary.id() && matches[0].form.is_verbatim(), "{matches:?}");
            assert!(value.contains(&text[matches[0].range.clone()]));
            assert_eq!(identify(value, &key), Some(canary.id()));
            let (base64, base64_of_hex) = base64_of_hex(value);
            let percent: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let spaced: Vec<String> = value.chars().map(String::from).collect();
            for form in [
                value.to_uppercase(),
                value.to_lowercase().replace(' ', "-"),
                value.replace(' ', ""),
                value.replace(' ', "+"),
                value.replace(' ', "%20"),
                format!("{{\\\"a\\\":\\\"{value}\\\"}}"),
                format!("data={base64}&x=1"),
                base64_of_hex,
                signalbox_wire::hex::hex(value.as_bytes()),
                percent,
                value.chars().rev().collect(),
                spaced.join("-"),
            ] {
                let matches = find(&form, &key);
                assert!(!matches.is_empty() && matches.iter().all(|found| found.id == canary.id()), "{form}");
                assert!(form.get(matches[0].range.clone()).is_some());
            }
        }
    }
}

#[test]
fn canaries_of_another_key_and_altered_ones_are_unknown() {
    let other = CanaryKey::new([8; 32]);
    for kind in KINDS {
        let canary = Canary::new(kind, random(9), "x", &key());
        assert_eq!(find(canary.value(), &other), []);
        let part = find(canary.value(), &key())[0].range.clone();
        for at in part.filter(|at| canary.value().as_bytes()[*at] != b' ') {
            let mut bytes = canary.value().as_bytes().to_vec();
            bytes[at] = match bytes[at].to_ascii_lowercase() {
                b'a' => b'e',
                b'e' | b'i' | b'o' => b'a',
                b'k' => b'm',
                _ => b'k',
            };
            assert_eq!(find(&String::from_utf8(bytes).unwrap(), &key()), [], "{at}");
        }
    }
}

#[test]
fn several_canaries_are_reported_up_to_a_limit() {
    let key = key();
    let values: Vec<String> = (0..100)
        .map(|seed| Canary::new(KINDS[seed as usize % 4], random(seed + 1), "a", &key).value().to_owned())
        .collect();
    assert_eq!(find(&values[..10].join(" and\n"), &key).len(), 10);
    assert_eq!(find(&values.join(" and\n"), &key).len(), MAX_MATCHES);
}

#[test]
fn keys_are_not_shown() {
    assert_eq!(format!("{:?}", key()), "CanaryKey(…)");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn other_text_holds_no_canary(text in ".{0,300}|[a-z2-9]{200,2000}|([bdfghjklmnprstvz][aeio]){100,600}") {
        prop_assert_eq!(find(&text, &key()), []);
    }

    #[test]
    fn a_canary_is_found_within_any_text(
        random: [u8; 16], label in ".{0,20}", before in ".{0,40}", after in ".{0,40}", kind in 0_usize..4
    ) {
        let canary = Canary::new(KINDS[kind], random, &label, &key());
        let text = format!("{before} {} {after}", canary.value());
        prop_assert!(find(&text, &key()).iter().any(|found| found.id == canary.id()));
    }
}
