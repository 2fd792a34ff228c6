//! The steps from an older version of the tables to the next. Tables of an older version are told here as they were then.

use super::escape::escape;
use super::row::aside;
use super::words::MARKS_SQL;
use super::{Failure, notifications};
use crate::around::pack_claims;
use crate::body_codec::BodyCodec;
use crate::content::{self, Columns};
use crate::pack::Torn;
use ::postgres::Transaction;
use ::postgres::fallible_iterator::FallibleIterator;
use signalbox_engine::record::Content;

/// One step: makes version `n + 1` of version `n`.
pub type Converter = (u32, fn(&mut Transaction<'_>) -> Result<(), Failure>);

/// Every step there is. Tables take them one after the other, all in one transaction.
pub const CONVERTERS: &[Converter] = &[(1, to_version_2), (2, to_version_3)];

/// Version 1 had words in each entry, and an index for each column that can be asked for.
fn to_version_2(tables: &mut Transaction<'_>) -> Result<(), Failure> {
    let fill = format!(
        "INSERT INTO tape_words SELECT tape, seq, seq, coalesce(words, '') || array_to_tsvector({MARKS_SQL}) FROM tape_entries"
    );
    tables.batch_execute(
        "DROP INDEX tape_search;
        CREATE TABLE tape_words (
            tape BIGINT NOT NULL,
            first BIGINT NOT NULL,
            last BIGINT NOT NULL,
            words TSVECTOR NOT NULL,
            PRIMARY KEY (tape, first)
        );
        ALTER TABLE tape_words ALTER COLUMN words SET STORAGE EXTERNAL;",
    )?;
    tables.batch_execute(&fill)?;
    tables.batch_execute(
        "CREATE INDEX tape_search ON tape_words USING gin (words);
        ALTER TABLE tape_entries DROP COLUMN words;
        DROP INDEX entries_exchange, entries_session, entries_at, entries_method, entries_subject, entries_backend,
        entries_principal, entries_error",
    )?;
    Ok(())
}

/// Version 3 only adds columns, which most rows of version 2 do not have, and counts notifications by their method.
fn to_version_3(tables: &mut Transaction<'_>) -> Result<(), Failure> {
    tables.batch_execute(
        "ALTER TABLE tapes ADD COLUMN parent TEXT, ADD COLUMN seal BYTEA, ADD COLUMN aside BIGINT NOT NULL DEFAULT 0;
        ALTER TABLE sessions ADD COLUMN proof TEXT, ADD COLUMN address TEXT, ADD COLUMN claims BYTEA;
        ALTER TABLE tape_entries ADD COLUMN extra BYTEA;",
    )?;
    tables.batch_execute(notifications::TABLE)?;
    notifications::count_all(tables)?;
    let weigh = format!(
        "UPDATE tapes SET aside = weighed.aside FROM (SELECT tape, {} AS aside FROM tape_entries GROUP BY tape) AS weighed
        WHERE number = weighed.tape",
        aside()
    );
    tables.batch_execute(&weigh)?;
    tell_proofs(tables)
}

/// Sessions get the proof, address and claims that only their entries had.
fn tell_proofs(tables: &mut Transaction<'_>) -> Result<(), Failure> {
    let mut codec = BodyCodec::new();
    let mut told = Vec::new();
    let sql =
        "SELECT tape, session, form, body FROM tape_entries WHERE what = $1 AND session IS NOT NULL ORDER BY tape, seq";
    let mut rows = tables.query_raw(sql, [i16::from(content::SESSION)])?;
    while let Some(row) = rows.next()? {
        let form = u8::try_from(row.get::<_, i16>(2)).map_err(|_| Torn("a code is out of range"))?;
        let columns = Columns { what: content::SESSION, ..Columns::default() };
        let Content::Session(info) = content::unpack(columns, codec.unpack(form, row.get(3))?)? else { continue };
        told.push((row.get::<_, i64>(0), row.get::<_, i64>(1), info.proof, info.address, pack_claims(&info.claims)));
    }
    drop(rows);
    let update =
        tables.prepare("UPDATE sessions SET proof = $3, address = $4, claims = $5 WHERE tape = $1 AND number = $2")?;
    told.retain(|(_, _, proof, address, claims)| proof.is_some() || address.is_some() || claims.is_some());
    for (tape, number, proof, address, claims) in told {
        let (proof, address) = (proof.as_deref().map(escape), address.as_deref().map(escape));
        tables.execute(&update, &[&tape, &number, &proof, &address, &claims])?;
    }
    Ok(())
}
