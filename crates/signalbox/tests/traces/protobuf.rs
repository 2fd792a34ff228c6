//! The binary form of protocol buffers, read without knowing what it means. Written apart from the program's own
//! writer.

/// A field of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, in order; anything that is not one fails the test.
pub fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes);
                Field::Bytes(take(&mut bytes, usize::try_from(length).unwrap()).to_vec())
            }
            5 => Field::Number(u64::from(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()))),
            layout => panic!("no layout {layout}"),
        };
        found.push((key >> 3, field));
    }
    found
}

/// All values of a field that holds bytes.
pub fn all(bytes: &[u8], number: u64) -> Vec<Vec<u8>> {
    let of = |(field, value)| match value {
        Field::Bytes(bytes) if field == number => Some(bytes),
        _ => None,
    };
    fields(bytes).into_iter().filter_map(of).collect()
}

/// A field that holds a text.
pub fn text(bytes: &[u8], number: u64) -> Option<String> {
    all(bytes, number).pop().map(|bytes| String::from_utf8(bytes).unwrap())
}

/// A field that holds a number.
pub fn number(bytes: &[u8], number: u64) -> Option<u64> {
    fields(bytes).into_iter().find_map(|(field, value)| match value {
        Field::Number(value) if field == number => Some(value),
        _ => None,
    })
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number without an end");
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}
