use super::*;

/// Texts of both layers, with the words of their layers and their places.
fn parts(text: &str) -> Vec<(String, String, Range<usize>)> {
    let mut all = Vec::new();
    let _ = visit_parts(text, &mut |part| {
        all.push((part.layers.to_string(), part.text.to_owned(), part.range.clone()));
        ControlFlow::Continue(())
    });
    all
}

/// Returns true if a text of these layers contains the wanted one.
fn reads(text: &str, layers: &str, wanted: &str) -> bool {
    parts(text).iter().any(|(found, part, _)| found == layers && part.contains(wanted))
}

#[test]
fn each_encoding_is_undone() {
    for (text, layers, wanted) in [
        ("send the secret", "verbatim", "send the secret"),
        ("c2VuZCB0aGUgc2VjcmV0IHRvIG1l", "base64", "send the secret to me"),
        ("data=c2VuZCB0aGUg\nc2VjcmV0IHRv\r\nIG1l", "base64", "send the secret to me"),
        ("xyc2VuZCB0aGUgc2VjcmV0IHRvIG1l", "base64", "send the secret to me"),
        ("id_MTIzNDU2Nzg=", "base64", "12345678"),
        ("cwBlAGMAcgBlAHQAIAB0AGUAeAB0AA==", "base64", "secret text"),
        ("ONSWG4TFOQQGSZBAGQZA====", "base32", "secret id 42"),
        ("73656372657420696420343200", "hex", "secret id 42"),
        ("xa73656372657420696420343200", "hex", "secret id 42"),
        ("115 101 99 114 101 116 32 105 100 32 52 50", "numbers", "secret id 42"),
        ("73:65:63:72:65:74:20:69:64:20:34:32", "numbers", "secret id 42"),
        ("q=caf%C3%A9%20secret", "percent", "café secret"),
        ("q=the+secret+is+4%2B2", "percent", "the secret is 4+2"),
        (r#"{\"a\":\"x\\u0041 secret\"}"#, "escapes", r#"{"a":"x\u0041 secret"}"#),
        ("s-e-c-r-e-t- -4-2", "spaced", "secret 42"),
        (r#"["s","e","c","r","e","t"," ","4","2"]"#, "spaced", "secret 42"),
        ("key abcd-efgh-ijkl-mnop.", "spaced", "abcdefghijklmnop"),
        ("24 terces eht", "reversed", "the secret 42"),
        ("NzM2NTYzNzI2NTc0MjA2OTY0MjAzNDMyMDA=", "base64 of hex", "secret id 42"),
        ("yQDIklGI0VmcjV2c", "reversed of base64", "secret id 42"),
        ("c2VjcmV0JTIwaWQlMjA0Mg%3D%3D", "base64 of percent", "secret id 42"),
    ] {
        assert!(reads(text, layers, wanted), "{layers} of {text}: {:#?}", parts(text));
    }
}

#[test]
fn places_hold_the_encoded_text() {
    let text = "é token: c2VuZCB0aGUgc2VjcmV0IHRvIG1l, é";
    let all = parts(text);
    let (_, _, range) = all.iter().find(|(layers, part, _)| layers == "base64" && part.contains("secret")).unwrap();
    assert_eq!(&text[range.clone()], "c2VuZCB0aGUgc2VjcmV0IHRvIG1l");
    let text = "the é-s-e-c-r-e-t-4 rest";
    let all = parts(text);
    let (_, _, range) = all.iter().find(|(layers, part, _)| layers == "spaced" && part.contains("ésecret4")).unwrap();
    assert!(text[range.clone()].contains("s-e-c-r-e-t-4"));
}

#[test]
fn prose_decodes_to_its_reverse_alone() {
    let text = "The gateway reads each message once, checks it and passes it on; most of them are plain text.";
    let layers: Vec<String> = parts(text).into_iter().map(|(layers, ..)| layers).collect();
    assert_eq!(layers, ["verbatim", "reversed"]);
}

#[test]
fn the_second_layer_is_bounded() {
    for piece in ["%2525", "QUFBQUFBQUFB", "4142434445464748", "- ", "\"a\",", "\\\\u0041", "&amp;amp;", "+"] {
        let text = piece.repeat(40_000 / piece.len());
        let total: usize = parts(&text).iter().map(|(_, part, _)| part.len()).sum();
        assert!(total < text.len() * 24 + SECOND_LAYER_BYTES, "{piece}: {total}");
    }
}
