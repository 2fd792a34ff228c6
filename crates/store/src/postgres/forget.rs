//! Deletes a tape or its beginning a slice at a time.

use super::row::{self, aside};
use super::{Failure, notifications, tapes};
use crate::body_codec::{BodyCodec, EncodedBody, refers_to};
use crate::checkpoint::CheckpointEntry;
use crate::content::{self, Columns};
use crate::pack::DecodeError;
use crate::retention::Marks;
use crate::splice;
use ::postgres::{Client, Transaction};
use bytes::Bytes;
use signalbox_engine::record::{Body, Content};
use signalbox_seal::SigningKey;

/// Number of positions deleted in one transaction.
const SLICE: i64 = 10_000;

/// Deletes a tape by its number. If interrupted, the rest stays hidden and is swept later.
pub fn forget_number(client: &mut Client, tape: i64) -> Result<u64, Failure> {
    client.execute("UPDATE tapes SET hidden_since = 0 WHERE number = $1", &[&tape])?;
    let mut forgotten = 0;
    loop {
        let mut transaction = client.transaction()?;
        // The writer of the tape waits here, so that no entry is added between deleting the last one and the head.
        transaction.execute("SELECT 1 FROM tapes WHERE number = $1 FOR UPDATE", &[&tape])?;
        let Some(first) = first(&mut transaction, tape)? else {
            for table in ["exchanges", "notifications", "sessions", "tape_words"] {
                transaction.execute(&format!("DELETE FROM {table} WHERE tape = $1"), &[&tape])?;
            }
            transaction.execute("DELETE FROM tapes WHERE number = $1", &[&tape])?;
            transaction.commit()?;
            return Ok(forgotten);
        };
        forgotten += delete(&mut transaction, tape, first + SLICE)?;
        transaction.commit()?;
    }
}

/// Deletion of the beginning of a tape that continues.
#[derive(Copy, Clone, Debug)]
pub struct PostgresCut<'a> {
    /// Number of the tape.
    pub tape: i64,
    /// Position below which entries are deleted.
    pub below: u64,
    /// True to leave a mark that the beginning is missing.
    pub marked: bool,
    /// Key that signs a checkpoint if the tape is sealed.
    pub key: Option<&'a SigningKey>,
}

/// Deletes the entries below a position of a tape that continues.
pub fn forget_below(client: &mut Client, cut: PostgresCut<'_>) -> Result<u64, Failure> {
    let PostgresCut { tape, marked, .. } = cut;
    let below = cut.below as i64;
    let mut codec = BodyCodec::new();
    let mut forgotten = 0;
    loop {
        let mut transaction = client.transaction()?;
        transaction.execute("SELECT 1 FROM tapes WHERE number = $1 FOR UPDATE", &[&tape])?;
        let Some(first) = first(&mut transaction, tape)?.filter(|first| *first < below) else {
            return finish_cut(transaction, cut).map(|()| forgotten);
        };
        let end = below.min(first + SLICE);
        let marks = if marked { marks(&mut transaction, &mut codec, tape, end)? } else { Marks::default() };
        let sql = "SELECT count(*) FROM tape_entries WHERE tape = $1 AND seq < $2";
        let entries = transaction.query_one(sql, &[&tape, &end])?.get::<_, i64>(0) as u64;
        let mark = marks.next(entries).filter(|_| marked);
        if marked && mark.is_none() {
            return finish_cut(transaction, cut).map(|()| forgotten);
        }
        detach(&mut transaction, &mut codec, tape, end)?;
        take_off(&mut transaction, tape, end)?;
        notifications::take_off(&mut transaction, tape, end)?;
        put_checkpoint(&mut transaction, cut, end)?;
        forgotten += delete(&mut transaction, tape, end)? - marks.count;
        if let Some(content) = mark {
            put_mark(&mut transaction, &mut codec, tape, end - 1, &content, entries - marks.count)?;
        }
        let sql = "UPDATE tapes SET first_at =
            coalesce((SELECT at FROM tape_entries WHERE tape = $1 ORDER BY seq LIMIT 1), last_at) WHERE number = $1";
        transaction.execute(sql, &[&tape])?;
        transaction.commit()?;
    }
}

/// Deletes exchanges and sessions that have no entries any more.
fn finish_cut(
    mut transaction: Transaction<'_>,
    PostgresCut { tape, below, .. }: PostgresCut<'_>,
) -> Result<(), Failure> {
    let below = below as i64;
    transaction.execute("DELETE FROM exchanges WHERE tape = $1 AND last < $2", &[&tape, &below])?;
    let sql = "DELETE FROM sessions WHERE tape = $1 AND ended < coalesce(
        (SELECT at FROM tape_entries WHERE tape = $1 AND seq >= $2 ORDER BY seq LIMIT 1), ended + 1)";
    transaction.execute(sql, &[&tape, &below])?;
    transaction.commit()?;
    Ok(())
}

/// Signs the end of the deleted part, if the tape is sealed.
fn put_checkpoint(transaction: &mut Transaction<'_>, cut: PostgresCut<'_>, end: i64) -> Result<(), Failure> {
    let sql = "SELECT e.seq, e.what, e.extra, t.id, t.seal FROM tape_entries e, tapes t
        WHERE e.tape = $1 AND e.seq < $2 AND t.number = $1 ORDER BY e.seq DESC LIMIT 1";
    let Some(row) = transaction.query_opt(sql, &[&cut.tape, &end])? else { return Ok(()) };
    let what = u8::try_from(row.get::<_, i16>(1)).map_err(|_| DecodeError("a code is out of range"))?;
    let gone = CheckpointEntry { seq: row.get::<_, i64>(0) as u64, what, extra: row.get(2) };
    let (tape, seal): (String, Option<&[u8]>) = (row::unescape(row.get(3)), row.get(4));
    if let Some(seal) = gone.checkpoint(&tape, seal, cut.key)? {
        tapes::set_seal(transaction, cut.tape, &seal)?;
    }
    Ok(())
}

/// Returns the marks that earlier deletions left below a position.
fn marks(transaction: &mut Transaction<'_>, codec: &mut BodyCodec, tape: i64, below: i64) -> Result<Marks, Failure> {
    let mut marks = Marks::default();
    let sql = "SELECT form, body FROM tape_entries WHERE tape = $1 AND seq < $2 AND what = $3";
    for row in transaction.query(sql, &[&tape, &below, &i16::from(content::GAP)])? {
        let form = u8::try_from(row.get::<_, i16>(0)).map_err(|_| DecodeError("a code is out of range"))?;
        let columns = Columns { what: content::GAP, ..Columns::default() };
        marks.add(&content::unpack(columns, codec.unpack(form, row.get(1))?)?);
    }
    Ok(marks)
}

/// Inserts a mark for this many missing entries up to this position.
fn put_mark(
    transaction: &mut Transaction<'_>,
    codec: &mut BodyCodec,
    tape: i64,
    place: i64,
    content: &Content,
    missing: u64,
) -> Result<(), Failure> {
    let packed = content::pack(content, codec);
    let sql = "INSERT INTO tape_entries (tape, seq, at, principal, what, form, body) VALUES ($1, $2, coalesce(
        (SELECT at FROM tape_entries WHERE tape = $1 AND seq > $2 ORDER BY seq LIMIT 1),
        (SELECT last_at FROM tapes WHERE number = $1), 0), '', $3, $4, $5)";
    let what = i16::from(content::what(content));
    transaction.execute(sql, &[&tape, &place, &what, &i16::from(packed.form), &&packed.bytes[..]])?;
    let sql = "UPDATE tapes SET entries = entries + 1, gaps = gaps + $2, aside = aside + $3 WHERE number = $1";
    transaction.execute(sql, &[&tape, &(missing as i64), &(packed.bytes.len() as i64)])?;
    Ok(())
}

fn first(transaction: &mut Transaction<'_>, tape: i64) -> Result<Option<i64>, Failure> {
    Ok(transaction.query_one("SELECT min(seq) FROM tape_entries WHERE tape = $1", &[&tape])?.get(0))
}

fn delete(transaction: &mut Transaction<'_>, tape: i64, below: i64) -> Result<u64, Failure> {
    // A run that ends later stays, with the words of some deleted entries. A search checks the entries themselves.
    transaction.execute("DELETE FROM tape_words WHERE tape = $1 AND last < $2", &[&tape, &below])?;
    Ok(transaction.execute("DELETE FROM tape_entries WHERE tape = $1 AND seq < $2", &[&tape, &below])?)
}

/// Subtracts the totals of a slice from those of its tape.
fn take_off(transaction: &mut Transaction<'_>, tape: i64, below: i64) -> Result<(), Failure> {
    let sql = format!(
        "SELECT what, count(*), coalesce(sum(length), 0)::bigint, sum(octet_length(body))::bigint, {}
        FROM tape_entries WHERE tape = $1 AND seq < $2 GROUP BY what",
        aside()
    );
    let (mut entries, mut kinds, mut passed, mut kept, mut besides) = (0, vec![0i64; 5], 0, 0, 0);
    for row in transaction.query(&sql, &[&tape, &below])? {
        let count: i64 = row.get(1);
        entries += count;
        besides += row.get::<_, i64>(4);
        if let Some(kind) = u8::try_from(row.get::<_, i16>(0)).ok().and_then(content::kind_of) {
            kinds[kind] += count;
            passed += row.get::<_, i64>(2);
            kept += row.get::<_, i64>(3);
        }
    }
    let sql = "UPDATE tapes SET entries = entries - $2, passed = passed - $3, kept = kept - $4,
        aside = aside - $6, kinds = (SELECT array_agg(a - b ORDER BY n) FROM unnest(kinds, $5::bigint[]) WITH ORDINALITY AS k (a, b, n))
        WHERE number = $1";
    transaction.execute(sql, &[&tape, &entries, &passed, &kept, &kinds, &besides])?;
    Ok(())
}

/// Detaches remaining entries from a deleted base. The first of them becomes whole, and the others refer to it.
fn detach(transaction: &mut Transaction<'_>, codec: &mut BodyCodec, tape: i64, below: i64) -> Result<(), Failure> {
    let sql = "SELECT seq, base, form, body FROM tape_entries WHERE tape = $1 AND base < $2 AND seq >= $2
        ORDER BY base, seq";
    let mut base: Option<(i64, Option<Bytes>)> = None;
    let mut successor: Option<(u64, Bytes)> = None;
    for row in transaction.query(sql, &[&tape, &below])? {
        let (seq, of): (i64, i64) = (row.get(0), row.get(1));
        if base.as_ref().is_none_or(|(known, _)| *known != of) {
            let found = row::bases(transaction, codec, tape, &[of])?.pop();
            base = Some((of, found.map(|(_, whole)| whole)));
            successor = None;
        }
        let form = u8::try_from(row.get::<_, i16>(2)).map_err(|_| DecodeError("a code is out of range"))?;
        let Body::Like { prefix, suffix, middle, .. } = codec.unpack(form, row.get(3))? else { continue };
        let Some((_, Some(known))) = &base else { continue };
        let Some(whole) = splice::join(known, prefix, suffix, &middle) else { continue };
        let packed = match &successor {
            Some((place, like)) => codec.pack(&splice::encode_like(*place, like, &whole)),
            None => {
                successor = Some((seq as u64, whole.clone()));
                codec.pack(&Body::Whole(whole))
            }
        };
        replace(transaction, tape, seq, &packed)?;
    }
    Ok(())
}

fn replace(transaction: &mut Transaction<'_>, tape: i64, seq: i64, packed: &EncodedBody) -> Result<(), Failure> {
    let sql = "UPDATE tapes SET kept = kept + $3 -
        (SELECT octet_length(body) FROM tape_entries WHERE tape = $1 AND seq = $2) WHERE number = $1";
    transaction.execute(sql, &[&tape, &seq, &(packed.bytes.len() as i64)])?;
    let base = refers_to(packed.form, &packed.bytes).map(|base| base as i64);
    let sql = "UPDATE tape_entries SET form = $3, body = $4, base = $5 WHERE tape = $1 AND seq = $2";
    transaction.execute(sql, &[&tape, &seq, &i16::from(packed.form), &&packed.bytes[..], &base])?;
    Ok(())
}
