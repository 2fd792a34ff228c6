//! Texts of a tape as literals of other languages. Names and arguments from a tape must never become code.

use std::fmt::Write as _;

/// Maximum length of a text in a comment.
const MAX_COMMENT: usize = 120;

/// Quotes a text as one word of a POSIX shell.
pub(crate) fn shell(text: &str) -> String {
    // A word of a shell cannot hold a NUL; valid JSON never contains a raw one.
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}

/// Quotes a text as a JavaScript string literal in ASCII.
pub(crate) fn javascript(text: &str) -> String {
    quoted(text, |out, letter| {
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Quotes a text as a Python string literal in ASCII.
pub(crate) fn python(text: &str) -> String {
    quoted(text, |out, letter| {
        let _ = match u32::from(letter) {
            code @ 0..=0xffff => write!(out, "\\u{code:04x}"),
            code => write!(out, "\\U{code:08x}"),
        };
    })
}

fn quoted(text: &str, escape: impl Fn(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            ' '..='~' => out.push(letter),
            other => escape(&mut out, other),
        }
    }
    out.push('"');
    out
}

/// Makes a text safe for a comment that ends with its line.
pub(crate) fn comment(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars().take(MAX_COMMENT) {
        match letter {
            ' '..='~' => out.push(letter),
            other => out.extend(other.escape_unicode()),
        }
    }
    out
}

/// Escapes JSON so that its strings contain no `{{`, `{%` or `{#`, which programs with templates would expand. Outside
/// of strings JSON never has these pairs.
pub(crate) fn without_templates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('{', Some('{' | '%' | '#')) => out.push_str("\\u007b"),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const HOSTILE: &[&str] = &[
        "",
        "'; rm -rf / #",
        "$(id) `id` ${HOME} !! \\ \" ' \n \r \t",
        "\"); process.exit(1); (\"",
        "\u{2028}\u{2029}\u{85}\u{feff}\u{7f}",
        "*/ --> </script> ''' \"\"\" \\",
        "\u{1f600} \u{e4} \\u0041 \\N{DASH} %s {x}",
        "{{url}} {% x %} {# y #} ${x}",
    ];

    /// Texts of letters that matter to some language, in every order that a deterministic source gives.
    fn texts() -> Vec<String> {
        const LETTERS: &[char] = &[
            '\'',
            '"',
            '\\',
            '$',
            '`',
            '\n',
            '\r',
            '{',
            '}',
            '%',
            '#',
            '\u{2028}',
            '\u{1f600}',
            'a',
            ' ',
            '(',
            ';',
            '\t',
        ];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % bound as u64) as usize
        };
        let made = (0..200).map(|_| (0..next(24)).map(|_| LETTERS[next(LETTERS.len())]).collect());
        HOSTILE.iter().map(|text| (*text).to_owned()).chain(made).collect()
    }

    /// What a program prints for this script, or none where the program is not there.
    fn output(program: &str, args: &[&str], script: &str) -> Option<String> {
        let mut command = Command::new(program);
        let child = command.args(args).arg(script).stdin(Stdio::null()).output().ok()?;
        assert!(child.status.success(), "{program}: {}\n{script}", String::from_utf8_lossy(&child.stderr));
        Some(String::from_utf8(child.stdout).unwrap())
    }

    #[test]
    fn every_text_comes_back_from_its_language() {
        let texts = texts();
        let expected: String = texts.iter().map(|text| format!("{text}\u{1}")).collect();
        let words: Vec<String> = texts.iter().map(|text| shell(text)).collect();
        let printed = output("sh", &["-c"], &format!("printf '%s\\001' {}", words.join(" ")));
        assert_eq!(printed.expect("a shell"), expected);
        let literals: Vec<String> = texts.iter().map(|text| javascript(text)).collect();
        let script = format!("process.stdout.write([{}].map((text) => text + '\\x01').join(''))", literals.join(","));
        if let Some(printed) = output("node", &["-e"], &script) {
            assert_eq!(printed, expected);
        }
        let literals: Vec<String> = texts.iter().map(|text| python(text)).collect();
        let script = format!(
            "import sys\nsys.stdout.buffer.write(''.join(t + '\\1' for t in [{}]).encode())",
            literals.join(",")
        );
        if let Some(printed) = output("python3", &["-c"], &script) {
            assert_eq!(printed, expected);
        }
    }

    #[test]
    fn comments_have_one_line_of_ascii() {
        for text in texts() {
            let comment = comment(&text);
            assert!(comment.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{comment}");
        }
    }

    #[test]
    fn no_template_is_left_in_json_and_it_says_the_same() {
        for text in texts() {
            let json = serde_json::json!({"a": {"b": text}}).to_string();
            let safe = without_templates(&json);
            assert!(!safe.contains("{{") && !safe.contains("{%") && !safe.contains("{#"), "{safe}");
            let (one, other): (serde_json::Value, serde_json::Value) =
                (serde_json::from_str(&json).unwrap(), serde_json::from_str(&safe).unwrap());
            assert_eq!(one, other);
        }
    }
}
