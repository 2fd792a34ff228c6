//! The `traceparent` of W3C Trace Context, as used in `_meta` and in HTTP headers.

/// Flag for a recorded span.
pub const SAMPLED: u8 = 0x01;
/// Flag for a random trace id. Passed on unchanged.
pub const RANDOM: u8 = 0x02;
/// Maximum length of a `tracestate` that is passed on.
pub const MAX_STATE: usize = 512;

/// Length of version 00, and of the prefix shared by all later versions.
const LENGTH: usize = 55;

/// Position in a trace: trace, span and flags.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct TraceParent {
    /// Trace id as raw bytes.
    pub trace: [u8; 16],
    /// Span id as raw bytes.
    pub span: [u8; 8],
    /// Known flags: [`SAMPLED`] and [`RANDOM`].
    pub flags: u8,
}

impl TraceParent {
    /// Parses a `traceparent`. Returns `None` for invalid text, so that a new trace starts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let version = hex::<1>(bytes.get(..2)?)?[0];
        // Version 00 has exactly this length. Later versions may continue after another dash.
        let ends = match version {
            0xff => false,
            0 => bytes.len() == LENGTH,
            _ => bytes.len() == LENGTH || bytes.get(LENGTH) == Some(&b'-'),
        };
        let dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if !ends || !dashes {
            return None;
        }
        let trace = hex(bytes.get(3..35)?)?;
        let span = hex(bytes.get(36..52)?)?;
        let flags = hex::<1>(bytes.get(53..55)?)?[0];
        (trace != [0; 16] && span != [0; 8]).then_some(Self { trace, span, flags: flags & (SAMPLED | RANDOM) })
    }

    /// Returns `true` if the span is recorded.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

impl std::fmt::Display for TraceParent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("00-")?;
        self.trace.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

/// Decodes lower-case hexadecimal digits.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_read_is_written_the_same() {
        let parent = TraceParent::parse(GOOD).unwrap();
        assert!(parent.is_sampled());
        assert_eq!((parent.trace[0], parent.span[7]), (0x0a, 0x31));
        assert_eq!(parent.to_string(), GOOD);
    }

    #[test]
    fn flags_that_nobody_has_defined_are_not_handed_on() {
        let parent = TraceParent::parse(&GOOD.replace("-01", "-fe")).unwrap();
        assert_eq!((parent.flags, parent.is_sampled()), (RANDOM, false));
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let later = GOOD.replacen("00", "cc", 1);
        assert!(TraceParent::parse(&later).is_some());
        assert!(TraceParent::parse(&format!("{later}-what-comes-then")).is_some());
        assert!(TraceParent::parse(&format!("{later}x")).is_none());
    }

    #[test]
    fn anything_else_is_none() {
        for bad in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-"),
            &format!(" {GOOD}"),
            &GOOD.to_uppercase(),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            &GOOD.replace('-', "_"),
            &GOOD.replace("0af7", "0ag7"),
            "00-0af7651916cd43dd8448eb211c80319é-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }
}
