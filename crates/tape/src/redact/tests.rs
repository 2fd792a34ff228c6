//! What is taken out of messages, and what stays.

use super::*;
use signalbox_wire::{Limits, scan};

fn redactor(settings: &RedactionSettings) -> Redactor {
    Redactor::new(settings, [7; 32]).unwrap()
}

fn with(redactor: &Redactor, text: &str) -> String {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    match redactor.message(&bytes, Some("tools/call")) {
        Redaction::Same => text.to_owned(),
        Redaction::Changed(changed) => {
            if scan(&bytes, &Limits::default()).is_ok() {
                assert_eq!(scan(&changed, &Limits::default()), Ok(()), "{}", String::from_utf8_lossy(&changed));
            }
            String::from_utf8(changed.to_vec()).unwrap()
        }
        Redaction::Withheld => "withheld".to_owned(),
    }
}

fn by_default(text: &str) -> String {
    with(&redactor(&RedactionSettings::default()), text)
}

fn only(name: &str, action: Action) -> Redactor {
    let keys = vec![KeyRule { name: name.to_owned(), action }];
    redactor(&RedactionSettings { keys, ..RedactionSettings::none() })
}

fn at(path: &str, method: Option<&str>, action: Action) -> Redactor {
    let paths = vec![PathRule { method: method.map(str::to_owned), path: path.to_owned(), action }];
    redactor(&RedactionSettings { paths, ..RedactionSettings::none() })
}

/// Proves SO-10.
#[test]
fn members_with_secret_names_go_at_any_depth_and_in_any_case() {
    assert_eq!(
        by_default(r#"{"a": {"PassWord" : "x", "b":[{"api-key":7,"apiKey":"y"}]}, "c":1}"#),
        r#"{"a": {"PassWord" : "[redacted]", "b":[{"api-key":"[redacted]","apiKey":"[redacted]"}]}, "c":1}"#
    );
    assert_eq!(by_default(r#"{"client_secret":{"deep":["x"]}}"#), r#"{"client_secret":"[redacted]"}"#);
    assert_eq!(by_default(r#"{"pass\u0077ord":"x"}"#), r#"{"pass\u0077ord":"[redacted]"}"#);
}

#[test]
fn only_whole_names_count_and_empty_values_stay() {
    for text in [
        r#"{"progressToken":"t","nextCursor":"c","tokenCount":3,"max_tokens":5,"tokens":[1],"secretary":"Ann"}"#,
        r#"{"password":null,"token":true,"secret":""}"#,
        r#"{"value":"the password is a word"}"#,
    ] {
        assert_eq!(by_default(text), text);
    }
}

#[test]
fn the_schema_of_a_secret_is_no_secret_but_its_default_is() {
    let schema =
        r#"{"properties":{"token":{"type":"string","default":"abc"},"x":{"type":"integer"}},"required":["token"]}"#;
    assert_eq!(by_default(schema), schema.replace("\"abc\"", "\"[redacted]\""));
    assert_eq!(by_default(r#"{"properties":{"token":"abc"}}"#), r#"{"properties":{"token":"[redacted]"}}"#);
}

/// Proves SO-10.
#[test]
fn actions_remove_replace_hash_and_mask() {
    let text = r#"{"a":1, "pin" : "123456" ,"b":[{"pin":2}],"c":{"pin":3,"d":4}}"#;
    assert_eq!(with(&only("pin", Action::Remove), text), r#"{"a":1 ,"b":[{}],"c":{"d":4}}"#);
    assert_eq!(with(&only("pin", Action::Remove), r#"{"pin":1,"PIN":2,"x":3}"#), r#"{"x":3}"#);
    assert_eq!(with(&only("pin", Action::Remove), r#"{"x":3,"pin":1,"Pin":2}"#), r#"{"x":3}"#);
    assert_eq!(with(&only("pin", Action::Replace("\"?\"".into())), r#"{"pin":[1]}"#), r#"{"pin":"\"?\""}"#);
    assert_eq!(with(&only("pin", Action::Mask { visible: 2 }), r#"{"pin":"123456"}"#), r#"{"pin":"****56"}"#);
    assert_eq!(with(&only("pin", Action::Mask { visible: 2 }), r#"{"pin":"1234"}"#), r#"{"pin":"****"}"#);
    let hash = only("pin", Action::Hash);
    let hashed = with(&hash, r#"{"pin":"123456"}"#);
    assert!(hashed.starts_with(r#"{"pin":"hash:"#) && !hashed.contains("123456"));
    assert_eq!(with(&hash, r#"{"pin":"12345\u0036"}"#), hashed, "the same value however it is written");
    let other = Redactor::new(
        &RedactionSettings {
            keys: vec![KeyRule { name: "pin".into(), action: Action::Hash }],
            ..RedactionSettings::none()
        },
        [8; 32],
    );
    assert_ne!(with(&other.unwrap(), r#"{"pin":"123456"}"#), hashed, "another tape, another hash");
}

/// Proves SO-10.
#[test]
fn places_are_named_by_pointers_and_by_method() {
    let card = at("/params/arguments/*/card", None, Action::default());
    assert_eq!(
        with(&card, r#"{"params":{"arguments":{"a":{"card":1},"b":[{"card":2}]},"card":3}}"#),
        r#"{"params":{"arguments":{"a":{"card":"[redacted]"},"b":[{"card":2}]},"card":3}}"#
    );
    assert_eq!(with(&at("/a/1", None, Action::Remove), r#"{"a":[1, 2, 3]}"#), r#"{"a":[1, 3]}"#);
    assert_eq!(with(&at("/a/*", None, Action::Remove), r#"{"a":[1, 2, 3]}"#), r#"{"a":[]}"#);
    assert_eq!(with(&at("/x~1y", None, Action::Remove), r#"{"x\/y":2}"#), "{}");
    let of = |method| at("/params/x", Some(method), Action::Remove);
    assert_eq!(with(&of("tools/*"), r#"{"params":{"x":1}}"#), r#"{"params":{}}"#);
    assert_eq!(with(&of("prompts/*"), r#"{"params":{"x":1}}"#), r#"{"params":{"x":1}}"#);
}

/// The governed dialect has other names for the arguments of a call and for its result.
#[test]
fn a_place_is_the_same_in_both_dialects() {
    let of = |path: &str, method: Option<&str>, message_method: &str, text: &str| {
        let redacted = at(path, method, Action::default()).message(&Bytes::from(text.to_owned()), Some(message_method));
        match redacted {
            Redaction::Changed(changed) => !changed.windows(4).any(|part| part == b"4111"),
            Redaction::Same | Redaction::Withheld => false,
        }
    };
    for (mcp, dialect) in [("/params/arguments", "/params/parameters"), ("/result/structuredContent", "/result/data")] {
        for path in [mcp, dialect] {
            let [_, root, name] = path.split('/').collect::<Vec<_>>()[..] else { panic!("{path}") };
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"{root}":{{"{name}":{{"card":"4111"}}}}}}"#);
            for rule in [format!("{mcp}/card"), format!("{dialect}/card"), mcp.to_owned(), mcp.replace(root, "*")] {
                assert!(of(&rule, None, "tools/invoke", &text), "{rule} {text}");
                for method in ["tools/call", "tools/invoke", "tools/validate"] {
                    assert!(of(&rule, Some("tools/call"), method, &text), "{rule} {method} {text}");
                    assert!(of(&rule, Some("tools/i*"), method, &text), "{rule} {method} {text}");
                }
                assert!(!of(&rule, Some("tools/call"), "tools/register", &text), "{rule} {text}");
            }
        }
    }
    assert!(!of("/params/arguments/card", None, "tools/call", r#"{"params":{"other":{"card":"4111"}}}"#));
}

#[test]
fn a_message_stays_a_message_whatever_the_rules_say() {
    let call = r#"{"jsonrpc":"2.0","id":"i","method":"m","params":{"a":1}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":"i","result":{"a":1}}"#;
    let error = r#"{"jsonrpc":"2.0","id":"i","error":{"code":1,"message":"x"}}"#;
    for action in [Action::Remove, Action::default(), Action::Hash, Action::Mask { visible: 1 }] {
        for path in ["/*", "/id", "/method", "/params", "/result", "/error", "/jsonrpc"] {
            for text in [call, answer, error] {
                let kept = with(&at(path, None, action.clone()), text);
                let parsed = Envelope::parse(Bytes::from(kept.clone())).unwrap();
                assert_eq!(parsed.id().unwrap().token(), b"\"i\"", "{kept}");
            }
        }
    }
    let all = at("/*", None, Action::Remove);
    assert_eq!(with(&all, call), r#"{"jsonrpc":"2.0","id":"i","method":"m"}"#);
    assert_eq!(with(&all, answer), r#"{"jsonrpc":"2.0","id":"i","result":null}"#);
}

/// Proves SO-10.
#[test]
fn well_known_shapes_are_found_in_every_string() {
    let key = "AKIAABCDEFGHIJKLMNOP";
    for (secret, left) in [
        (key.to_owned(), "[redacted]"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789".to_owned(), "[redacted]"),
        ("xoxb-123456789012-abcdef".to_owned(), "[redacted]"),
        (format!("sk-ant-{}", "api03-abcdefghijklmnop"), "[redacted]"),
        ("sk-abcdefghijk0lmnopqrstuvwx".to_owned(), "[redacted]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl".to_owned(), "[redacted]"),
        ("Bearer abcdef.123456".to_owned(), "Bearer [redacted]"),
    ] {
        assert_eq!(
            by_default(&format!(r#"{{"a":["see {secret} there"]}}"#)),
            format!(r#"{{"a":["see {left} there"]}}"#)
        );
    }
    assert_eq!(by_default(&format!(r#"{{"t":"\t\"{key}\" \u00e9"}}"#)), r#"{"t":"\t\"[redacted]\" \u00e9"}"#);
    assert_eq!(by_default(r#"{"t":"x \u0041KIAABCDEFGHIJKLMN\u004fP y"}"#), r#"{"t":"x [redacted] y"}"#);
    assert_eq!(by_default(r#"{"t":"\ud83d\ude00AKIA\u0041BCDEFGHIJKLMNOP"}"#), r#"{"t":"\ud83d\ude00[redacted]"}"#);
    let block = r"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\n";
    assert_eq!(by_default(&format!(r#"{{"pem":"{block}ok"}}"#)), r#"{"pem":"[redacted]\nok"}"#);
}

#[test]
fn a_secret_as_a_key_is_hashed_so_that_names_stay_apart() {
    let text = r#"{"AKIAABCDEFGHIJKLMNOP":1,"AKIAABCDEFGHIJKLMNOQ":2}"#;
    let kept = by_default(text);
    assert!(!kept.contains("AKIA"), "{kept}");
    assert_eq!(kept.matches("hash:").count(), 2, "{kept}");
}

#[test]
fn what_is_no_json_is_held_to_the_patterns() {
    assert_eq!(by_default("starting with AKIAABCDEFGHIJKLMNOP\u{7}"), "starting with [redacted]\u{7}");
    assert_eq!(by_default("plain { line"), "plain { line");
    assert_eq!(by_default(r#"{"password":"x","rest"#), r#"{"password":"[redacted]","rest"#);
    assert_eq!(by_default(&"[".repeat(5_000)), "withheld");
}

#[test]
fn own_patterns_may_ask_for_the_ends_of_a_string() {
    let patterns = vec![PatternRule { pattern: "^[0-9]{4}$".into(), action: Action::Mask { visible: 1 } }];
    let pins = redactor(&RedactionSettings { patterns, ..RedactionSettings::none() });
    assert_eq!(with(&pins, r#"{"a":"1234","b":"12345"}"#), r#"{"a":"****4","b":"12345"}"#);
}

#[test]
fn texts_are_held_to_the_same_rules() {
    let redactor = redactor(&RedactionSettings::default());
    assert_eq!(redactor.text("said Bearer abcdefgh1".into()), "said Bearer [redacted]");
    assert_eq!(redactor.text(r#"{"token":"x"}"#.into()), r#"{"token":"[redacted]"}"#);
    assert_eq!(Redactor::none().text("Bearer abcdefgh1".into()), "Bearer abcdefgh1");
}

#[test]
fn rules_that_make_no_sense_are_refused_in_words() {
    let refused = |settings: RedactionSettings| Redactor::new(&settings, [0; 32]).unwrap_err().to_string();
    let path = PathRule { method: None, path: "params".into(), action: Action::Hash };
    assert_eq!(
        refused(RedactionSettings { paths: vec![path.clone()], ..RedactionSettings::none() }),
        "`params` is not a JSON pointer; it must begin with `/`, as in `/params/arguments/card`"
    );
    let many = vec![PathRule { path: "/a".into(), ..path }; 65];
    assert!(refused(RedactionSettings { paths: many, ..RedactionSettings::none() }).contains("at most 64"));
    let pattern = PatternRule { pattern: "(".into(), action: Action::Hash };
    assert!(
        refused(RedactionSettings { patterns: vec![pattern], ..RedactionSettings::none() }).starts_with("`(` is no")
    );
}

#[test]
fn the_head_of_a_tape_says_what_was_taken_out() {
    let mut settings = RedactionSettings::none();
    settings.keys.push(KeyRule { name: "pin".into(), action: Action::Mask { visible: 2 } });
    settings.paths.push(PathRule { method: Some("tools/*".into()), path: "/params/x".into(), action: Action::Hash });
    assert_eq!(redactor(&settings).describe(), ["key pin: mask 2", "path /params/x of tools/*: hash"]);
    assert!(redactor(&RedactionSettings::none()).describe().is_empty());
}

#[test]
fn every_kind_of_credential_goes_from_a_message_wherever_it_stands() {
    let redactor = redactor(&RedactionSettings::default());
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let mut left = Vec::new();
    for rule in signalbox_secret_scan::Scanner::built_in().rules() {
        for (number, text) in rule.examples.iter().enumerate() {
            let example = signalbox_secret_scan::made_up::example(text, &format!("{} tape {number}", rule.id));
            let secret = &example.text[example.secret.clone()];
            let plain = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":{}}}}}"#, quoted(&example.text));
            let inner = format!(r#"{{"rows":[1,{{"note":{}}}]}}"#, quoted(&example.text));
            let within = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":{}}}}}"#, quoted(&inner));
            for message in [plain, within, example.text.clone()] {
                let kept = with(&redactor, &message);
                let found = [secret.to_owned(), quoted(secret), quoted(&quoted(secret))];
                let found = found.iter().any(|form| kept.contains(form.trim_matches(['"', '\\'])));
                if found || kept == message {
                    left.push(format!("{}: {kept}", rule.id));
                }
            }
        }
    }
    assert!(left.is_empty(), "{}\n{}", left.len(), left.join("\n"));
}

#[test]
fn json_in_a_text_is_read_like_the_message_and_stays_valid() {
    let kept = by_default(r#"{"text":"{\"user\":\"ann\",\"password\":\"a\\\"b \\u00e9\",\"n\":[1,2]}","x":"\/"}"#);
    assert_eq!(kept, r#"{"text":"{\"user\":\"ann\",\"password\":\"[redacted]\",\"n\":[1,2]}","x":"\/"}"#);
    let kept = by_default(r#"{"text":" \n{\"token\" : {\"a\":[1]}, \"b\":\"{\\\"pwd\\\":7}\"}"}"#);
    assert_eq!(kept, r#"{"text":" \n{\"token\" : \"[redacted]\", \"b\":\"{\\\"pwd\\\":\\\"[redacted]\\\"}\"}"}"#);
    let removed = with(&only("pin", Action::Remove), r#"{"t":"{\"a\":1,\"pin\":\"2\",\"b\":[{\"PIN\":3}]}"}"#);
    assert_eq!(removed, r#"{"t":"{\"a\":1,\"b\":[{}]}"}"#);
    let schema = r#"{"text":"{\"properties\":{\"token\":{\"type\":\"string\"}}}"}"#;
    assert_eq!(by_default(schema), schema);
}

/// JSON in strings within strings is read to a bound. Beyond it, a string that may hold a secret goes as a whole.
#[test]
fn no_secret_is_too_deep_in_strings_to_be_found() {
    let patterns = vec![PatternRule { pattern: "\"x\":\"hunter[0-9]\"".into(), action: Action::default() }];
    let by_pattern = redactor(&RedactionSettings { patterns, ..RedactionSettings::none() });
    let wrapped = |inner: &str, ascii: bool| {
        let quoted = serde_json::to_string(inner).unwrap();
        let quoted = if ascii { quoted.replace("\\\"", "\\u0022").replace("\\\\", "\\u005c") } else { quoted };
        format!(r#"{{"t":[{quoted},"x"]}}"#)
    };
    for ascii in [false, true] {
        let (mut key, mut pattern) = (r#"{"password":"hunter2"}"#.to_owned(), r#"{"x":"hunter2"}"#.to_owned());
        let (mut prose, mut plain) = ("so: {\"password\":\"hunter2\"}.".to_owned(), r#"{"x":"hunter2"}"#.to_owned());
        for depth in 0..10 {
            // A pattern is for strings, and the outermost text is none.
            let pattern_redactor = if depth == 0 { only("x", Action::Remove) } else { by_pattern.clone() };
            for (redactor, text) in [
                (redactor(&RedactionSettings::default()), &key),
                (pattern_redactor, &pattern),
                (only("password", Action::Remove), &prose),
            ] {
                let kept = with(&redactor, text);
                assert!(!kept.contains("hunter2"), "{depth} {ascii}: {kept}");
                assert!(depth == 0 || serde_json::from_str::<serde_json::Value>(&kept).is_ok(), "{depth}: {kept}");
            }
            // Quotes that are escaped as numbers may hide a name.
            let kept = with(&only("password", Action::Remove), &plain);
            assert!(ascii || kept == plain, "{depth}: {kept}");
            for text in [&mut key, &mut pattern, &mut prose, &mut plain] {
                *text = wrapped(text, ascii);
            }
        }
    }
    let named = by_default(r#"{"{\"password\":\"hunter2\"}":1,"{\"password\":\"hunter3\"}":2}"#);
    assert!(!named.contains("hunter") && named.matches("hash:").count() == 2, "{named}");
}

#[test]
fn members_of_json_anywhere_in_a_text_go() {
    let iban = |text: &str| with(&only("iban", Action::Replace("[redacted]".into())), text);
    let (own, gone) = (r#"{"iban":"DE1","n":1}"#, r#"{"iban":"[redacted]","n":1}"#);
    for around in [
        "\u{feff}#",
        "\u{a0}#",
        "\u{2003}\u{3000}#\u{85}",
        "#\n#",
        "#\r\n{}\n#\n",
        "Here:\n\n```json\n#\n```\n",
        "~~~\n[#,\n #]\n~~~ and ``#``",
        "{ if (x) { y } } # { z",
        "[not JSON] # said [1]",
        "{\"iban\":\"DE1\",x # {",
    ] {
        let (text, kept) = (around.replace('#', own), around.replace('#', gone).replace("\"DE1\"", "\"[redacted]\""));
        assert_eq!(iban(&text), kept, "by itself");
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let message = |text: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":{}}}}}"#, quoted(text));
        assert_eq!(iban(&message(&text)), message(&kept), "in a string");
        let twice = |text: &str| message(&format!(r#"{{"t":{}}}"#, quoted(text)));
        assert_eq!(iban(&twice(&text)), twice(&kept), "in a string in a string");
    }
    for escaped in [r#"{\u0022iban\u0022:\"DE1\"}"#, r#"\u007b\"iban\"\u003a\"DE1\"}"#, r#"{\"iban\"\r:\"DE1\"}"#] {
        let kept = iban(&format!(r##"{{"t":"# {escaped}"}}"##));
        assert!(!kept.contains("DE1") && kept.contains("[redacted]"), "{kept}");
    }
    let open = "[{".repeat(50_000);
    assert_eq!(iban(&open), open);
    let deep = serde_json::json!({"t": format!("# {}{own}", "[".repeat(600))}).to_string();
    assert_eq!(iban(&deep), "withheld");
}

#[test]
fn own_patterns_hold_in_json_within_strings_as_well() {
    let own = |pattern: &str| {
        let patterns = vec![PatternRule { pattern: pattern.into(), action: Action::Mask { visible: 1 } }];
        redactor(&RedactionSettings { patterns, ..RedactionSettings::none() })
    };
    let text = r#"{"t":"{\"a\":\"1234\",\"b\":\"12345\"}"}"#;
    assert_eq!(with(&own("^[0-9]{4}$"), text), r#"{"t":"{\"a\":\"****4\",\"b\":\"12345\"}"}"#);
    assert_eq!(with(&own(r#""b":"[0-9]*"#), text), r#"{"t":"{\"a\":\"1234\",****5\"}"}"#);
}

#[test]
fn the_name_of_a_member_tells_what_its_value_is() {
    let secret = "0123456789abcdef".repeat(2);
    assert_eq!(
        by_default(&format!(r#"{{"DATADOG_API_KEY":"{secret}","etag":"{secret}"}}"#)),
        format!(r#"{{"DATADOG_API_KEY":"[redacted]","etag":"{secret}"}}"#)
    );
    let clean = r#"{"next_page_token":"abc123def456","authorization_endpoint":"https://idp.test/a1"}"#;
    assert_eq!(by_default(clean), clean);
}

#[test]
fn a_message_that_cannot_be_searched_to_its_end_is_not_kept() {
    let many = "AKIAABCDEFGHIJKLMNOP ".repeat(20_000);
    assert_eq!(by_default(&format!(r#"{{"a":"{many}"}}"#)), "withheld");
    assert_eq!(by_default(&many), "withheld");
    let within = serde_json::json!({ "t": format!(r#"{{"a":"{many}"}}"#) }).to_string();
    assert_eq!(by_default(&within), "withheld");
}

#[test]
fn innocent_words_stay() {
    for text in ["task-management-system-overview", "Bearer authentication", "basic understanding of tokens"] {
        let message = format!(r#"{{"a":"{text}","b":["{text}"]}}"#);
        assert_eq!(by_default(&message), message);
    }
}

fn key(text: &str, id: Option<&str>) -> EncryptionKey {
    EncryptionKey::read(text, id).unwrap()
}

const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Proves SO-10.
#[test]
fn an_encrypted_secret_is_gone_for_all_but_the_holder_of_the_key() {
    let ours = key(HEX, Some("ops-1"));
    let mut settings = RedactionSettings::default();
    settings.keys.iter_mut().for_each(|rule| rule.action = Action::Encrypt(ours.clone()));
    settings.credentials = Some(Action::Encrypt(ours.clone()));
    let redactor = redactor(&settings);
    // Of every length, so that every form of a token is met; beside letters that could belong to it.
    for length in 1..40 {
        let secret: String = "p\u{e9}\\\"x".chars().cycle().take(length).collect();
        let secret = serde_json::to_string(&secret).unwrap();
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"password":{secret},"token":{{"a":[1,null]}},"pwd":7,"text":"key AKIAABCDEFGHIJKLMNOP=abc and = AKIAABCDEFGHIJKLMNOP","esc":"\u0041KIAABCDEFGHIJKLMNOP"}}}}"#
        );
        let kept = with(&redactor, &message);
        assert!(!kept.contains("AKIA") && !kept.contains(&secret) && !kept.contains("null"), "{kept}");
        assert_eq!(kept.matches("enc:ops-1:").count(), 6, "{kept}");
        assert_ne!(with(&redactor, &message), kept, "the same secret is never encrypted to the same bytes");
        let opened = |key: EncryptionKey| {
            let mut decryptor = Decryptor::new(vec![key]);
            (decryptor.message(&Bytes::from(kept.clone())), decryptor.counts())
        };
        let (whole, counts) = opened(ours.clone());
        let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
        assert_eq!((json(&whole), counts), (json(message.as_bytes()), (6, 0)));
        // Another key under the same name.
        let other = opened(key(&HEX.replace("00", "ff"), Some("ops-1")));
        assert_eq!(other, (Bytes::from(kept.clone()), (0, 6)));
        assert_eq!(opened(key(HEX, None)), (whole, (6, 0)), "whoever has the key need not know its name");
        let renamed = kept.replace("enc:ops-1:", "enc:ops-2:");
        let passed_off = Decryptor::new(vec![key(HEX, Some("ops-2"))]).message(&Bytes::from(renamed.clone()));
        assert_eq!(passed_off, renamed, "a token belongs to the name of its key");
    }
    assert_eq!(with(&redactor, "no JSON, Bearer abcdefghijk1!").matches("enc:ops-1:").count(), 1);
    assert!(redactor.describe().contains(&"key password: encrypt ops-1".to_owned()));
}

#[test]
fn what_was_encrypted_in_json_within_a_string_comes_back_as_it_was() {
    let ours = key(HEX, Some("ops-1"));
    let mut settings = RedactionSettings::default();
    settings.keys.iter_mut().for_each(|rule| rule.action = Action::Encrypt(ours.clone()));
    let redactor = redactor(&settings);
    let inner = r#"{"password":"a\"b\\","token":{"a":[1,null]},"pwd":7,"n":"{\"secret\":\"\\n\",\"token\":[\"x\"]}"}"#;
    let message = serde_json::json!({ "text": inner }).to_string();
    let kept = with(&redactor, &message);
    assert_eq!(kept.matches("enc:ops-1:").count(), 5, "{kept}");
    let opened = Decryptor::new(vec![ours]).message(&Bytes::from(kept));
    assert_eq!(String::from_utf8_lossy(&opened), message);
}

/// Proves SO-10.
#[test]
fn keys_are_hex_or_base64_and_are_never_shown() {
    let base64 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    assert_eq!(key(&format!(" {HEX}\n"), None), key(base64, None));
    assert_eq!(key(HEX, None).id().len(), 8);
    assert_ne!(key(HEX, None).id(), key(&HEX.replace("00", "01"), None).id());
    assert_eq!(format!("{:?}", key(HEX, Some("a"))), "EncryptionKey(\"a\")");
    for bad in ["", "00", &HEX[1..], &HEX.replace('0', "g"), "AAEC"] {
        assert_eq!(EncryptionKey::read(bad, None), Err(BadKey::Text), "{bad}");
    }
    for id in ["", "a b", "a:b", &"x".repeat(65)] {
        assert_eq!(EncryptionKey::read(HEX, Some(id)), Err(BadKey::Id), "{id}");
    }
}

#[test]
fn what_only_looks_like_a_token_stays_as_it_is() {
    let mut decryptor = Decryptor::new(vec![key(HEX, Some("k"))]);
    for text in [
        "enc:",
        "enc::AAAA=",
        "enc:k:",
        "enc:k:A",
        "enc:k:AA==",
        "enc:k:AAAA",
        "enc:k:AAA=",
        "xenc:k:enc:k:AAA=",
        "enc:enc:enc:",
    ] {
        assert_eq!(decryptor.message(&Bytes::from_static(text.as_bytes())), text);
    }
}
