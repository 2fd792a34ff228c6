//! Extent of one escape sequence of a terminal (ECMA-48 and the operating system commands of xterm).

use super::RemovalClass;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// Escape sequence at the start of a text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct TerminalSequence {
    /// Number of bytes of the sequence.
    pub(super) length: usize,
    pub(super) class: RemovalClass,
}

/// Form of a sequence, which decides where it ends.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Form {
    /// Control sequence: parameters and a final byte.
    Csi,
    /// Operating system command: ends with BEL or a string terminator.
    Osc,
    /// Device control, application command, privacy message: ends with a string terminator.
    Text,
    /// Everything else: intermediate bytes and a final byte.
    Short,
}

impl TerminalSequence {
    /// Reads the sequence that begins with ESC or a C1 control at the start of `bytes`.
    ///
    /// A command whose terminator is missing loses its introducer only, so that the text behind it stays visible.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (form, start) = match bytes {
            [ESC, b'[', ..] => (Form::Csi, 2),
            [ESC, b']', ..] => (Form::Osc, 2),
            [ESC, b'P' | b'X' | b'^' | b'_', ..] => (Form::Text, 2),
            [ESC, ..] => (Form::Short, 1),
            [0xc2, 0x9b, ..] => (Form::Csi, 2),
            [0xc2, 0x9d, ..] => (Form::Osc, 2),
            [0xc2, 0x90 | 0x98 | 0x9e | 0x9f, ..] => (Form::Text, 2),
            _ => return None,
        };
        let body = bytes.get(start..).unwrap_or_default();
        let length = start
            + match form {
                Form::Csi => csi_length(body),
                Form::Osc => text_length(body, true).unwrap_or(0),
                Form::Text => text_length(body, false).unwrap_or(0),
                Form::Short => short_length(body),
            };
        let class = match (form, body) {
            (Form::Osc, [b'8', b';', ..]) => RemovalClass::TerminalLink,
            (Form::Osc, [b'5', b'2', b';', ..]) => RemovalClass::ClipboardWrite,
            _ => RemovalClass::TerminalSequence,
        };
        Some(Self { length, class })
    }
}

/// Returns the length of parameters, intermediates and the final byte.
fn csi_length(body: &[u8]) -> usize {
    let inner = body.iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
    inner + usize::from(body.get(inner).is_some_and(|byte| (0x40..0x7f).contains(byte)))
}

/// Returns the length of intermediates and the final byte of a short sequence.
fn short_length(body: &[u8]) -> usize {
    let inner = body.iter().take_while(|byte| (0x20..0x30).contains(*byte)).count();
    let last = body.get(inner).is_some_and(|byte| (0x30..0x7f).contains(byte));
    if last { inner + 1 } else { 0 }
}

/// Returns the length of a command with its terminator, or `None` if another sequence begins before it.
fn text_length(body: &[u8], bell: bool) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = body.get(at..)?;
        let next = at + memchr::memchr3(ESC, BEL, 0xc2, rest)?;
        match body.get(next..)? {
            [BEL, ..] if bell => return Some(next + 1),
            [ESC, b'\\', ..] | [0xc2, 0x9c, ..] => return Some(next + 2),
            [ESC, ..] | [0xc2, 0x80..=0x9f, ..] => return None,
            _ => at = next + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sequences of xterm's `ctlseqs` and of ECMA-48, each with its length.
    #[test]
    fn sequences_end_where_a_terminal_ends_them() {
        use RemovalClass::{ClipboardWrite, TerminalLink, TerminalSequence as Other};
        let table = [
            ("\u{1b}[31mred", 5, Other),
            ("\u{1b}[38;2;1;2;3mx", 13, Other),
            ("\u{1b}[?1049hx", 8, Other),
            ("\u{1b}[2 qx", 5, Other),
            ("\u{1b}[31\nx", 4, Other),
            ("\u{1b}]0;title\u{7}x", 10, Other),
            ("\u{1b}]0;title\u{1b}\\x", 11, Other),
            ("\u{1b}]8;;https://example.org\u{1b}\\x", 26, TerminalLink),
            ("\u{1b}]52;c;aGk=\u{7}x", 12, ClipboardWrite),
            ("\u{1b}]52;c;aGk=", 2, ClipboardWrite),
            ("\u{1b}]0;a\u{1b}[31m", 2, Other),
            ("\u{1b}P1$r\u{7}q\u{1b}\\x", 9, Other),
            ("\u{1b}_app\u{9c}x", 7, Other),
            ("\u{1b}(Bx", 3, Other),
            ("\u{1b}cx", 2, Other),
            ("\u{1b}", 1, Other),
            ("\u{1b}\nx", 1, Other),
            ("\u{9b}31mx", 5, Other),
            ("\u{9d}0;é\u{9c}x", 8, Other),
        ];
        for (text, length, class) in table {
            let found = TerminalSequence::read(text.as_bytes());
            assert_eq!(found, Some(TerminalSequence { length, class }), "{text:?}");
        }
        assert_eq!(TerminalSequence::read("\u{85}".as_bytes()), None);
    }
}
