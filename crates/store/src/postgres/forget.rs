//! Forgetting tapes, or the beginning of one, a slice at a time.

use super::{Failure, notifications, row};
use crate::content;
use crate::pack::Torn;
use crate::splice;
use crate::squeeze::{Packed, Squeezer, refers_to};
use ::postgres::{Client, Transaction};
use bytes::Bytes;
use signalbox_engine::record::Body;

/// How many places are forgotten in one transaction.
const SLICE: i64 = 10_000;

/// Forgets a tape by its number. Where that is interrupted the rest cannot be seen, and is swept later.
pub fn forget_number(client: &mut Client, tape: i64) -> Result<u64, Failure> {
    client.execute("UPDATE tapes SET hidden_since = 0 WHERE number = $1", &[&tape])?;
    let mut forgotten = 0;
    loop {
        let mut transaction = client.transaction()?;
        // The writer of the tape waits here, so that nothing comes in between the last entry and the head.
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

/// Forgets what lies below a place of a tape that goes on.
pub fn forget_below(client: &mut Client, tape: i64, below: u64) -> Result<u64, Failure> {
    let below = below as i64;
    let mut squeezer = Squeezer::new();
    let mut forgotten = 0;
    loop {
        let mut transaction = client.transaction()?;
        transaction.execute("SELECT 1 FROM tapes WHERE number = $1 FOR UPDATE", &[&tape])?;
        let Some(first) = first(&mut transaction, tape)?.filter(|first| *first < below) else {
            transaction.execute("DELETE FROM exchanges WHERE tape = $1 AND last < $2", &[&tape, &below])?;
            transaction.commit()?;
            return Ok(forgotten);
        };
        let end = below.min(first + SLICE);
        detach(&mut transaction, &mut squeezer, tape, end)?;
        take_off(&mut transaction, tape, end)?;
        notifications::take_off(&mut transaction, tape, end)?;
        forgotten += delete(&mut transaction, tape, end)?;
        let sql = "UPDATE tapes SET first_at =
            coalesce((SELECT at FROM tape_entries WHERE tape = $1 ORDER BY seq LIMIT 1), last_at) WHERE number = $1";
        transaction.execute(sql, &[&tape])?;
        transaction.commit()?;
    }
}

fn first(transaction: &mut Transaction<'_>, tape: i64) -> Result<Option<i64>, Failure> {
    Ok(transaction.query_one("SELECT min(seq) FROM tape_entries WHERE tape = $1", &[&tape])?.get(0))
}

fn delete(transaction: &mut Transaction<'_>, tape: i64, below: i64) -> Result<u64, Failure> {
    // A run that ends behind stays, with words of some entries that are gone; a search looks for itself.
    transaction.execute("DELETE FROM tape_words WHERE tape = $1 AND last < $2", &[&tape, &below])?;
    Ok(transaction.execute("DELETE FROM tape_entries WHERE tape = $1 AND seq < $2", &[&tape, &below])?)
}

/// What a slice takes off the sums of its tape.
fn take_off(transaction: &mut Transaction<'_>, tape: i64, below: i64) -> Result<(), Failure> {
    let sql = "SELECT what, count(*), coalesce(sum(length), 0)::bigint, sum(octet_length(body))::bigint
        FROM tape_entries WHERE tape = $1 AND seq < $2 GROUP BY what";
    let (mut entries, mut kinds, mut passed, mut kept) = (0, vec![0i64; 5], 0, 0);
    for row in transaction.query(sql, &[&tape, &below])? {
        let count: i64 = row.get(1);
        entries += count;
        if let Some(kind) = u8::try_from(row.get::<_, i16>(0)).ok().and_then(content::kind_of) {
            kinds[kind] += count;
            passed += row.get::<_, i64>(2);
            kept += row.get::<_, i64>(3);
        }
    }
    let sql = "UPDATE tapes SET entries = entries - $2, passed = passed - $3, kept = kept - $4,
        kinds = (SELECT array_agg(a - b ORDER BY n) FROM unnest(kinds, $5::bigint[]) WITH ORDINALITY AS k (a, b, n))
        WHERE number = $1";
    transaction.execute(sql, &[&tape, &entries, &passed, &kept, &kinds])?;
    Ok(())
}

/// Entries that stay and refer to one that goes: the first of them becomes whole, the others refer to that one.
fn detach(transaction: &mut Transaction<'_>, squeezer: &mut Squeezer, tape: i64, below: i64) -> Result<(), Failure> {
    let sql = "SELECT seq, base, form, body FROM tape_entries WHERE tape = $1 AND base < $2 AND seq >= $2
        ORDER BY base, seq";
    let mut base: Option<(i64, Option<Bytes>)> = None;
    let mut heir: Option<(u64, Bytes)> = None;
    for row in transaction.query(sql, &[&tape, &below])? {
        let (seq, of): (i64, i64) = (row.get(0), row.get(1));
        if base.as_ref().is_none_or(|(known, _)| *known != of) {
            let found = row::bases(transaction, squeezer, tape, &[of])?.pop();
            base = Some((of, found.map(|(_, whole)| whole)));
            heir = None;
        }
        let form = u8::try_from(row.get::<_, i16>(2)).map_err(|_| Torn("a code is no code"))?;
        let Body::Like { prefix, suffix, middle, .. } = squeezer.unpack(form, row.get(3))? else { continue };
        let Some((_, Some(known))) = &base else { continue };
        let Some(whole) = splice::join(known, prefix, suffix, &middle) else { continue };
        let packed = match &heir {
            Some((place, like)) => squeezer.pack(&splice::told_by(*place, like, &whole)),
            None => {
                heir = Some((seq as u64, whole.clone()));
                squeezer.pack(&Body::Whole(whole))
            }
        };
        replace(transaction, tape, seq, &packed)?;
    }
    Ok(())
}

fn replace(transaction: &mut Transaction<'_>, tape: i64, seq: i64, packed: &Packed) -> Result<(), Failure> {
    let sql = "UPDATE tapes SET kept = kept + $3 -
        (SELECT octet_length(body) FROM tape_entries WHERE tape = $1 AND seq = $2) WHERE number = $1";
    transaction.execute(sql, &[&tape, &seq, &(packed.bytes.len() as i64)])?;
    let base = refers_to(packed.form, &packed.bytes).map(|base| base as i64);
    let sql = "UPDATE tape_entries SET form = $3, body = $4, base = $5 WHERE tape = $1 AND seq = $2";
    transaction.execute(sql, &[&tape, &seq, &i16::from(packed.form), &&packed.bytes[..], &base])?;
    Ok(())
}
