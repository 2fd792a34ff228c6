//! Estimates the memory of records before they are decoded. An empty element takes two bytes of a record and hundreds
//! of bytes of memory.

use super::record::Nonsense;
use bytes::Buf;
use prost::decode_length_delimiter;

/// A field of a record that may repeat or contain such fields, by its number in `tape.proto`.
#[derive(Debug)]
pub(super) struct Field {
    number: usize,
    /// Memory that one element takes besides its texts, in bytes.
    weight: u64,
    content: FieldContent,
}

#[derive(Debug)]
enum FieldContent {
    Text,
    Numbers,
    Record(&'static [Field]),
}

const fn field(number: usize, weight: u64, content: FieldContent) -> Field {
    Field { number, weight, content }
}

use FieldContent::{Numbers, Record, Text};

/// Memory of two texts and of their place in a list, in bytes.
const PAIR: u64 = 64;
const SESSION_INFO: &[Field] = &[field(7, PAIR, Record(&[]))];
const DECISION: &[Field] = &[field(6, PAIR, Record(&[])), field(7, PAIR, Record(&[]))];

/// Weighted fields of `Head`.
pub(super) const HEAD: &[Field] = &[field(7, 32, Text), field(9, 512, Record(&[field(2, 0, Record(SESSION_INFO))]))];
/// Weighted fields of `Index`.
pub(super) const INDEX: &[Field] = &[field(1, 128, Record(&[field(7, 16, Numbers)]))];
/// Weighted fields of `Entry`.
pub(super) const ENTRY: &[Field] = &[
    field(6, 0, Record(SESSION_INFO)),
    field(8, 0, Record(&[field(19, 0, Record(&[field(4, PAIR, Record(&[]))]))])),
    field(9, 0, Record(DECISION)),
    field(12, 0, Record(&[field(1, 384, Record(DECISION))])),
    field(13, 0, Record(&[field(2, 0, Record(SESSION_INFO))])),
    field(14, 0, Record(&[field(5, PAIR, Record(&[])), field(6, 32, Text)])),
];

/// Sums the weights of all elements of a record. Fields that are not listed weigh nothing, because decoding keeps only
/// their last value.
///
/// # Errors
/// Fails if the record is not protobuf, or has groups, which no version of the format writes.
pub(super) fn weigh(mut record: &[u8], fields: &[Field]) -> Result<u64, Nonsense> {
    const CUT: Nonsense = "a record is cut off";
    let mut sum = 0;
    while !record.is_empty() {
        let key = decode_length_delimiter(&mut record).map_err(|_| CUT)?;
        let known = fields.iter().find(|field| field.number == key >> 3);
        sum += known.map_or(0, |field| field.weight);
        let skipped = match key & 7 {
            0 => {
                decode_length_delimiter(&mut record).map_err(|_| CUT)?;
                0
            }
            1 => 8,
            2 => decode_length_delimiter(&mut record).map_err(|_| CUT)?,
            5 => 4,
            _ => return Err("a record has a field of an unknown form"),
        };
        let content = record.get(..skipped).ok_or(CUT)?;
        record.advance(skipped);
        sum += match known {
            Some(Field { content: Record(fields), .. }) => weigh(content, fields)?,
            // Each packed number ends with a byte whose high bit is clear.
            Some(Field { content: Numbers, weight, .. }) => {
                content.iter().filter(|byte| **byte < 0x80).count() as u64 * weight
            }
            Some(Field { content: Text, .. }) | None => 0,
        };
    }
    Ok(sum)
}
