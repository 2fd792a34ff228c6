//! The strict scan over all files of JSONTestSuite, where they lie beside the checkout.

use std::path::PathBuf;

use bytes::Bytes;
use signalbox_wire::{Envelope, Limits, Message, ScanErrorKind, scan};

/// What the grammar leaves open (`i_`), and where we are stricter than the grammar (`y_`): the decision for each.
const DECISIONS: &[(&str, Option<ScanErrorKind>)] = {
    use ScanErrorKind::{ByteOrderMark, DuplicateKey, LoneSurrogate, NotUtf8, NumberOutOfRange, TooDeep};
    &[
        ("i_number_double_huge_neg_exp.json", None),
        ("i_number_huge_exp.json", Some(NumberOutOfRange)),
        ("i_number_neg_int_huge_exp.json", Some(NumberOutOfRange)),
        ("i_number_pos_double_huge_exp.json", Some(NumberOutOfRange)),
        ("i_number_real_neg_overflow.json", Some(NumberOutOfRange)),
        ("i_number_real_pos_overflow.json", Some(NumberOutOfRange)),
        ("i_number_real_underflow.json", None),
        ("i_number_too_big_neg_int.json", None),
        ("i_number_too_big_pos_int.json", None),
        ("i_number_very_big_negative_int.json", None),
        ("i_object_key_lone_2nd_surrogate.json", Some(LoneSurrogate)),
        ("i_string_1st_surrogate_but_2nd_missing.json", Some(LoneSurrogate)),
        ("i_string_1st_valid_surrogate_2nd_invalid.json", Some(LoneSurrogate)),
        ("i_string_UTF-16LE_with_BOM.json", Some(NotUtf8)),
        ("i_string_UTF-8_invalid_sequence.json", Some(NotUtf8)),
        ("i_string_UTF8_surrogate_U+D800.json", Some(NotUtf8)),
        ("i_string_incomplete_surrogate_and_escape_valid.json", Some(LoneSurrogate)),
        ("i_string_incomplete_surrogate_pair.json", Some(LoneSurrogate)),
        ("i_string_incomplete_surrogates_escape_valid.json", Some(LoneSurrogate)),
        ("i_string_invalid_lonely_surrogate.json", Some(LoneSurrogate)),
        ("i_string_invalid_surrogate.json", Some(LoneSurrogate)),
        ("i_string_invalid_utf-8.json", Some(NotUtf8)),
        ("i_string_inverted_surrogates_U+1D11E.json", Some(LoneSurrogate)),
        ("i_string_iso_latin_1.json", Some(NotUtf8)),
        ("i_string_lone_second_surrogate.json", Some(LoneSurrogate)),
        ("i_string_lone_utf8_continuation_byte.json", Some(NotUtf8)),
        ("i_string_not_in_unicode_range.json", Some(NotUtf8)),
        ("i_string_overlong_sequence_2_bytes.json", Some(NotUtf8)),
        ("i_string_overlong_sequence_6_bytes.json", Some(NotUtf8)),
        ("i_string_overlong_sequence_6_bytes_null.json", Some(NotUtf8)),
        ("i_string_truncated-utf-8.json", Some(NotUtf8)),
        ("i_string_utf16BE_no_BOM.json", Some(NotUtf8)),
        ("i_string_utf16LE_no_BOM.json", Some(NotUtf8)),
        ("i_structure_500_nested_arrays.json", Some(TooDeep)),
        ("i_structure_UTF-8_BOM_empty_object.json", Some(ByteOrderMark)),
        ("y_object_duplicated_key.json", Some(DuplicateKey)),
        ("y_object_duplicated_key_and_value.json", Some(DuplicateKey)),
    ]
};

fn files() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/JSONTestSuite/test_parsing");
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let read =
        |entry: std::fs::DirEntry| Some((entry.file_name().into_string().ok()?, std::fs::read(entry.path()).ok()?));
    let mut files: Vec<_> = entries.filter_map(Result::ok).filter_map(read).collect();
    files.sort();
    files
}

/// Proves S-66.
#[test]
fn the_scan_decides_every_file() {
    for (name, bytes) in files() {
        let verdict = scan(&bytes, &Limits::default()).map_err(|error| error.kind);
        if let Some((_, decision)) = DECISIONS.iter().find(|(file, _)| *file == name) {
            assert_eq!(verdict.err(), *decision, "{name}");
        } else {
            assert_eq!(verdict.is_ok(), name.starts_with("y_"), "{name}: {verdict:?}");
            assert!(!name.starts_with("i_"), "{name} has no decision");
        }
    }
}

/// Proves S-7.
#[test]
fn the_envelope_reads_every_file_without_panic() {
    for (name, bytes) in files() {
        let _ = Envelope::parse(Bytes::from(bytes.clone()));
        let _ = Message::parse(Bytes::from(bytes.clone()), 10);
        let head = br#"{"jsonrpc":"2.0","id":1,"method":"m","params":["#;
        let wrapped = [&head[..], &bytes, b"]}"].concat();
        let verdict = Envelope::parse(Bytes::from(wrapped));
        assert!(verdict.is_ok() || !name.starts_with("y_"), "{name}: {verdict:?}");
    }
}
