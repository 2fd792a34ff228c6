//! Compact binary encoding: numbers of variable length, and texts prefixed with their length.

/// Error of damaged stored data.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(pub &'static str);

/// Appends a number in groups of seven bits, the lowest first.
pub fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push((number as u8) | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a text with its length.
pub fn put_text(to: &mut Vec<u8>, text: &str) {
    put_number(to, text.len() as u64);
    to.extend_from_slice(text.as_bytes());
}

/// Appends an optional text.
pub fn put_optional(to: &mut Vec<u8>, text: Option<&str>) {
    to.push(u8::from(text.is_some()));
    if let Some(text) = text {
        put_text(to, text);
    }
}

/// Appends bytes with their length.
pub fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Appends pairs of texts with their count.
pub fn put_pairs(to: &mut Vec<u8>, pairs: &[(String, String)]) {
    put_number(to, pairs.len() as u64);
    for (name, value) in pairs {
        put_text(to, name);
        put_text(to, value);
    }
}

/// Decoder of packed bytes.
pub struct Unpack<'a>(pub &'a [u8]);

impl<'a> Unpack<'a> {
    /// Reads the next byte.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.0.split_first().ok_or(DecodeError("it ends too early"))?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads a number of variable length.
    pub fn number(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DecodeError("a number is too long"))
    }

    /// Reads bytes with their length.
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(self.number()?).map_err(|_| DecodeError("a text is too long"))?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DecodeError("a text ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Reads a text with its length.
    pub fn text(&mut self) -> Result<String, DecodeError> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| DecodeError("a text is not UTF-8"))
    }

    /// Reads pairs of texts with their count.
    pub fn pairs(&mut self) -> Result<Vec<(String, String)>, DecodeError> {
        let count = self.count()?;
        (0..count).map(|_| Ok((self.text()?, self.text()?))).collect()
    }

    /// Reads an optional text.
    pub fn optional(&mut self) -> Result<Option<String>, DecodeError> {
        match self.byte()? {
            0 => Ok(None),
            _ => self.text().map(Some),
        }
    }

    /// Reads the count of a list whose items take at least one byte each.
    pub fn count(&mut self) -> Result<usize, DecodeError> {
        let count = self.number()?;
        if count > self.0.len() as u64 {
            return Err(DecodeError("a list ends too early"));
        }
        Ok(count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked() {
        let mut packed = Vec::new();
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            put_number(&mut packed, number);
        }
        put_text(&mut packed, "Grüße");
        put_optional(&mut packed, None);
        put_optional(&mut packed, Some(""));
        let mut unpack = Unpack(&packed);
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(unpack.number(), Ok(number));
        }
        assert_eq!(unpack.text().unwrap(), "Grüße");
        assert_eq!(unpack.optional().unwrap(), None);
        assert_eq!(unpack.optional().unwrap(), Some(String::new()));
        assert!(unpack.0.is_empty());
    }

    #[test]
    fn what_is_torn_is_an_error_and_no_panic() {
        assert_eq!(Unpack(&[]).number(), Err(DecodeError("it ends too early")));
        assert_eq!(Unpack(&[0xff; 11]).number(), Err(DecodeError("a number is too long")));
        assert_eq!(Unpack(&[5, b'a']).text(), Err(DecodeError("a text ends too early")));
        assert_eq!(Unpack(&[1, 0xff]).text(), Err(DecodeError("a text is not UTF-8")));
        assert_eq!(Unpack(&[9, 1]).count(), Err(DecodeError("a list ends too early")));
    }
}
