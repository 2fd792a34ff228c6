use super::*;
use proptest::prelude::*;
use std::time::Instant;

fn cleaned(text: &str) -> String {
    clean(text, &CleaningRules::ALL).map_or_else(|| text.to_owned(), |cleaned| cleaned.text)
}

fn classes(text: &str) -> Vec<RemovalClass> {
    scan(text, &CleaningRules::ALL).into_iter().map(|removal| removal.class).collect()
}

/// Texts that cleaning must not touch. Emoji sequences are those of `emoji-test.txt` and `emoji-zwj-sequences.txt`.
const UNTOUCHED: &[&str] = &[
    "",
    "plain text,\twith a tab\r\nand CRLF\n",
    "\u{feff}byte order mark at the start",
    "👨‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 🏴‍☠️ ❤️‍🔥 🧑🏻‍❤️‍💋‍🧑🏿 👁️‍🗨️ 🐻‍❄️",
    "🇩🇪🇫🇷 1️⃣ #️⃣ *️⃣ ☎︎ ☎️ ©️ ™️ ▶️ ↔️ ㊗️ Ⓜ️",
    "می‌خواهم کتاب‌هایم را بخوانم. PDF‌ها",
    "שָׁלוֹם עוֹלָם C++\u{200e} גרסה 2",
    "\u{2067}שלום\u{2069} abc עברית",
    "क्‍ष क्‌ष हिन्दी ക്‍",
    "ภาษา\u{200b}ไทย",
    "葛\u{e0100} 漢字、かな。한국어 ᄒᆞᆫ",
    "ᠮᠣᠩᠭᠣᠯ\u{180b} ᠭᠠᠯ",
    "Tiếng Việt: ế ề; NFD e\u{302}\u{301}; z\u{335}",
    "\u{e0a0} main \u{f121}",
    "form feed\u{c}in old sources",
    "# Title\n\n- [link](https://example.org/a?b=c#d \"title\")\n- ![img](a/b.png)\n\n[ref]: https://example.org/x\n",
    "[![CI](https://github.com/a/b/actions/workflows/ci.yml/badge.svg?branch=main)](https://github.com/a/b/actions)",
    "`<!-- in code -->` and ``` `` ``` and\n```html\n<script>x()</script>\n<!-- c -->\n```\n",
    "~~~\n<script src=x></script>\n~~~\n",
    "fn f<T: Into<String>>(a: &[T]) -> Vec<Option<T>> { if a < b && c > d { x[i](y) } }",
    "let x = a[0](1); map[key]: value; if (x<y) y>z;",
    "<p class=\"a\">Hello <b>world</b> <a href=\"https://example.org/?page=2\">x</a> <img src=\"a.png\" alt=\"b\"></p>",
    "an escaped \\<!-- comment --> and \\[x](javascript:1)",
    "footnote[^1]\n\n[^1]: A note, see https://example.org (\"quoted\").\n",
    "the <script> element and Vec<Object>",
];

#[test]
fn ordinary_texts_stay_as_they_are() {
    for text in UNTOUCHED {
        assert_eq!(clean(text, &CleaningRules::ALL), None, "{text:?}");
    }
}

#[test]
fn invisible_and_acting_characters_are_removed() {
    use RemovalClass as C;
    let zalgo = format!("z{}", "\u{301}".repeat(9));
    let table: &[(&str, &str, C)] = &[
        ("a\u{1b}[31mred\u{1b}[0m", "ared", C::TerminalSequence),
        ("\u{1b}]8;;https://x.org\u{7}text\u{1b}]8;;\u{7}", "text", C::TerminalLink),
        ("\u{1b}]52;c;aGk=\u{7}a", "a", C::ClipboardWrite),
        ("\u{9b}2Ja", "a", C::TerminalSequence),
        ("bell\u{7} \u{0}nul\u{7f}", "bell nul", C::Control),
        ("safe\rEVIL", "safe\nEVIL", C::Control),
        ("a\r\r\nb\r", "a\r\nb", C::Control),
        ("N\u{8}NA\u{8}AM\u{8}M_\u{8}x", "NAMx", C::Control),
        ("abc\u{8}\u{8}d", "abcd", C::Control),
        ("a\u{e0041}\u{e0042}b", "ab", C::Tag),
        ("🏴\u{e0067}\u{e0062}\u{e007f}", "🏴", C::Tag),
        ("a\u{fe01}\u{e0120}b", "ab", C::VariationSelector),
        ("😀\u{fe0f}\u{fe0e}\u{e0110}", "😀\u{fe0f}", C::VariationSelector),
        ("ig\u{200b}no\u{200d}re\u{2060}x\u{feff}", "ignorex", C::ZeroWidth),
        ("می\u{200c}\u{200c}\u{200d}خ", "می\u{200c}خ", C::ZeroWidth),
        ("a\u{202e}cba\u{202c}", "acba", C::Bidi),
        ("a\u{200e}b \u{2066}c\u{2069}", "ab c", C::Bidi),
        ("עברית \u{202e}abc\u{202c}", "עברית abc", C::Bidi),
        ("עברית \u{2067}abc", "עברית abc", C::Bidi),
        ("pass\u{ad}word", "password", C::SoftHyphen),
        ("\u{fff9}a\u{fffa}b\u{fffb}", "ab", C::Annotation),
        ("a\u{2063}b\u{3164}c\u{34f}", "abc", C::Invisible),
        ("a\u{e000}\u{e001}\u{e002}\u{e003}\u{e004}b", "ab", C::PrivateUse),
        (&zalgo, "z\u{301}\u{301}\u{301}\u{301}", C::CombiningFlood),
    ];
    for (text, expected, class) in table {
        assert_eq!(cleaned(text), *expected, "{text:?}");
        assert_eq!(classes(text).first(), Some(class), "{text:?}");
    }
}

#[test]
fn markup_that_hides_or_acts_is_replaced() {
    use RemovalClass as C;
    let table: &[(&str, &str, C)] = &[
        ("a ![x](https://x.org/l?d={{secret}}) b", "a [removed: image that sends data] b", C::DataImage),
        ("![x](https://x.org/l?q=the+chat)", "[removed: image that sends data]", C::DataImage),
        ("[t](https://x.org/?q=[data]&x=1)", "[t][removed: link that sends data]", C::DataLink),
        ("[t](javascript:alert(1))", "[t][removed: link that runs a script]", C::ScriptLink),
        ("![x][r]\n\n[r]: https://x.org/l?d=secret", "![x][r]\n\n[removed: image that sends data]", C::DataImage),
        ("![x](data:image/png;base64,AA)", "[removed: data URL]", C::DataUrl),
        ("a<!-- ignore -->b", "a[removed: HTML comment]b", C::Comment),
        ("<!-- x -->(javascript:1)", "[removed: HTML comment] (javascript:1)", C::Comment),
        ("a <!-- open", "a [removed: HTML comment] open", C::Comment),
        ("[//]: # (hidden note)\nb", "[removed: HTML comment]\nb", C::Comment),
        ("<div style='display:none'>x <div>y</div> z</div>!", "[removed: hidden HTML]!", C::HiddenHtml),
        ("<span hidden>x</span>y", "[removed: hidden HTML]y", C::HiddenHtml),
        ("<font color=white>x</font>y", "[removed: hidden HTML]y", C::HiddenHtml),
        ("<script>x()</script>y", "[removed: active HTML]y", C::ActiveHtml),
        ("<iframe src=//x.org>", "[removed: active HTML]", C::ActiveHtml),
        ("<img src=x onerror=alert(1)>", "[removed: active HTML]", C::ActiveHtml),
        ("<a href='javascript:x'>t</a>", "[removed: link that runs a script]t</a>", C::ScriptLink),
        ("<img src='https://x.org/p?d=${key}'>", "[removed: image that sends data]", C::DataImage),
    ];
    for (text, expected, class) in table {
        assert_eq!(cleaned(text), *expected, "{text:?}");
        assert_eq!(classes(text), [*class], "{text:?}");
    }
}

#[test]
fn switches_leave_their_classes_alone() {
    let text = "\u{1b}[1m\u{200b}a\u{202e}[x](javascript:1)<!-- --><p hidden></p><script>1</script>";
    assert_eq!(clean(text, &CleaningRules::NONE), None);
    for name in ["terminal", "invisible", "bidi", "links", "comments", "hidden_html", "active_html"] {
        let rules: CleaningRules = serde_json::from_value(serde_json::json!({ name: false })).unwrap();
        let found = scan(text, &rules);
        assert_eq!(found.len(), 6, "{name}: {found:?}");
        assert!(found.iter().all(|removal| rules.allows(removal.class)), "{name}");
    }
}

#[test]
fn markup_that_invisible_characters_split_is_found() {
    assert_eq!(cleaned("<\u{200b}!-- x -->"), "[removed: HTML comment]");
    assert_eq!(cleaned("[x](java\u{e0041}script:1)"), "[x][removed: link that runs a script]");
}

#[test]
fn removals_are_counted_with_their_first_place() {
    let removed = scan("ab\u{200b}\u{200c}c\u{200b}\u{1b}[m", &CleaningRules::ALL);
    let zero_width = RemovalCount { class: RemovalClass::ZeroWidth, count: 2, first: 2 };
    let sequence = RemovalCount { class: RemovalClass::TerminalSequence, count: 1, first: 12 };
    assert_eq!(removed, [zero_width, sequence]);
}

/// Inputs that make a careless parser quadratic. Each is about a megabyte.
#[test]
fn hostile_repetitions_take_linear_time() {
    let pieces = [
        "[",
        "](",
        "![](",
        "<!--",
        "<div hidden>",
        "<a b='",
        "<script>",
        "`",
        "``x",
        "\u{1b}]",
        "\u{1b}[1",
        "\u{200b}\u{fe0f}",
        "\u{e0041}\u{200b}",
        "<x ",
        "[a]: ",
        "\u{202a}",
        "a\r",
        "<a b=",
        "```\n",
        "\\",
        "\u{8}",
        "](x(",
        "<template ><",
        "</div",
    ];
    for piece in pieces {
        let text = piece.repeat(200_000 / piece.len());
        let start = Instant::now();
        let _ = clean(&text, &CleaningRules::ALL);
        assert!(start.elapsed().as_secs() < 20, "{piece:?} took {:?}", start.elapsed());
    }
}

/// Fragments that combine into sequences, links, tags, comments and scripts with joiners.
fn fragments() -> impl Strategy<Value = String> {
    let pieces = [
        "<",
        "!--",
        "-->",
        "[",
        "]",
        "(",
        ")",
        "!",
        ":",
        "`",
        "```\n",
        "\n",
        "\\",
        "a",
        " ",
        "\"",
        "'",
        "=",
        "/",
        ">",
        "<div hidden>",
        "</div>",
        "javascript:",
        "https://x.org/?q={{a}}",
        "data:x",
        "\u{1b}",
        "\u{9b}",
        "\u{9d}",
        "\u{7}",
        "31m",
        "\r",
        "\u{8}",
        "_",
        "\u{200b}",
        "\u{200c}",
        "\u{200d}",
        "\u{fe0f}",
        "\u{e0041}",
        "\u{e0100}",
        "\u{202e}",
        "\u{2067}",
        "\u{2069}",
        "\u{200e}",
        "\u{feff}",
        "\u{ad}",
        "\u{301}",
        "\u{e000}\u{e000}",
        "ی",
        "क",
        "ש",
        "😀",
        "♀",
        "葛",
        "ก",
        "<script>",
        "</script>",
        "on",
        "style=display:none",
    ];
    let all = pieces.iter().chain(markup_scan::PLACEHOLDERS).copied().collect::<Vec<_>>();
    proptest::collection::vec(proptest::sample::select(all), 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cleaning_twice_changes_nothing_more(text in fragments()) {
        let once = cleaned(&text);
        prop_assert_eq!(clean(&once, &CleaningRules::ALL), None);
    }

    #[test]
    fn any_text_can_be_cleaned(text in "\\PC{0,60}|(?s:.{0,60})") {
        let once = cleaned(&text);
        prop_assert_eq!(cleaned(&once), once);
    }

    /// Text of letters, digits and common punctuation has nothing to remove, in any script.
    #[test]
    fn letters_of_all_scripts_stay(text in "[\\p{L}\\p{Nd} .,;!?\n\t]{0,60}") {
        let is_filler = |character| matches!(character, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
        prop_assume!(!text.contains(is_filler));
        prop_assert_eq!(clean(&text, &CleaningRules::ALL), None);
    }

    /// A text between fences is shown as it is written, so its markup stays.
    #[test]
    fn joined_ordinary_lines_stay(parts in proptest::collection::vec(proptest::sample::select(UNTOUCHED), 0..4)) {
        let text = parts.iter().map(|part| part.trim_start_matches('\u{feff}')).collect::<Vec<_>>().join("\n\n");
        prop_assert_eq!(clean(&text, &CleaningRules::ALL), None);
    }
}
