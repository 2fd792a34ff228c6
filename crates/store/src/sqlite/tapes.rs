//! The heads of tapes, and their sessions.

use super::SqliteFailure;
use crate::around::{pack_claims, unpack_claims};
use crate::pack::DecodeError;
use crate::tape_row::{self, TapeRow};
use foldhash::HashMap;
use rusqlite::{Connection, OptionalExtension, Row, params};
use signalbox_engine::record::{SessionInfo, StoreError, TapeInfo, TapeKind};

const COLUMNS: &str = "number, id, kind, target, started, ended, program, redaction, sampling, entries,
    coalesce(first_at, started), coalesce(last_at, started), last_seq, disordered, indexed, kept,
    parent, seal, aside";

fn read(row: &Row<'_>) -> rusqlite::Result<TapeRow> {
    let number = |place: usize| row.get::<_, i64>(place).map(|number| number as u64);
    let kind: String = row.get(2)?;
    let redaction: String = row.get(7)?;
    let info = TapeInfo {
        id: row.get(1)?,
        // Only a later version could have stored a kind that is unknown here.
        kind: TapeKind::of_word(&kind).unwrap_or(TapeKind::Serve),
        target: row.get(3)?,
        started: number(4)?,
        ended: row.get::<_, Option<i64>>(5)?.map(|at| at as u64),
        program: row.get(6)?,
        redaction: redaction.lines().map(str::to_owned).collect(),
        sampling: row.get(8)?,
        parent: row.get(16)?,
        seal: row.get::<_, Option<Vec<u8>>>(17)?.map(Vec::into_boxed_slice),
    };
    Ok(TapeRow {
        number: row.get(0)?,
        info,
        entries: number(9)?,
        first_at: number(10)?,
        last_at: number(11)?,
        last_seq: number(12)?,
        disordered: row.get(13)?,
        indexed: number(14)?,
        kept: number(15)?,
        aside: number(18)?,
        rest: 0,
    })
}

/// Stores a head. Keeps the number of a tape that had one before.
pub fn insert(
    connection: &Connection,
    tape: &TapeInfo,
    number: Option<i64>,
    hidden_since: Option<i64>,
) -> Result<i64, SqliteFailure> {
    let there = "SELECT 1 FROM tapes WHERE id = ?1";
    if connection.prepare_cached(there)?.query_row([&tape.id], |_| Ok(())).optional()?.is_some() {
        return Err(StoreError::Query(format!("tape {} already exists", tape.id)).into());
    }
    let sql = "INSERT INTO tapes (number, id, kind, target, started, ended, program, redaction, sampling, hidden_since,
        parent, seal) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    let number = connection.prepare_cached(sql)?.insert(params![
        number,
        tape.id,
        tape.kind.word(),
        tape.target,
        tape.started as i64,
        tape.ended.map(|at| at as i64),
        tape.program,
        tape.redaction.join("\n"),
        tape.sampling,
        hidden_since,
        tape.parent,
        tape.seal.as_deref(),
    ])?;
    Ok(number)
}

/// Returns the seal of a tape; `None` if it is not sealed or does not exist.
pub fn seal(connection: &Connection, number: i64) -> rusqlite::Result<Option<Vec<u8>>> {
    let sql = "SELECT seal FROM tapes WHERE number = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([number], |row| row.get(0)).optional()?.flatten())
}

/// Replaces the seal of a tape.
pub fn set_seal(connection: &Connection, number: i64, seal: &[u8]) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE tapes SET seal = ?2 WHERE number = ?1")?.execute(params![number, seal])?;
    Ok(())
}

/// Returns all visible tapes, newest first.
pub fn all(connection: &Connection) -> Result<Vec<TapeRow>, SqliteFailure> {
    let sql = format!("SELECT {COLUMNS} FROM tapes WHERE hidden_since IS NULL ORDER BY started DESC, id DESC");
    let mut select = connection.prepare_cached(&sql)?;
    let rows = select.query_map([], read)?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows)
}

/// Returns all visible tapes, newest first, with the size of everything they store.
pub fn weighed(connection: &Connection) -> Result<Vec<TapeRow>, SqliteFailure> {
    let size = |columns: &[&str]| {
        let sizes: Vec<String> =
            columns.iter().map(|column| format!("coalesce(length(CAST({column} AS BLOB)), 0)")).collect();
        sizes.join(" + ")
    };
    let session =
        size(&["external", "client", "client_version", "revision", "transport", "proof", "address", "claims"]);
    let sql = format!(
        "SELECT tape, sum(size) FROM (SELECT tape, {session} AS size FROM sessions
        UNION ALL SELECT tape, {} FROM names) GROUP BY tape",
        size(&["name"])
    );
    let mut select = connection.prepare_cached(&sql)?;
    let sizes: HashMap<i64, i64> =
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let mut tapes = all(connection)?;
    for tape in &mut tapes {
        tape.rest = sizes.get(&tape.number).map_or(0, |size| *size as u64);
    }
    Ok(tapes)
}

/// Returns all tapes with the number of their entries, newest first.
pub fn list(connection: &Connection) -> Result<Vec<(TapeInfo, u64)>, SqliteFailure> {
    Ok(all(connection)?.into_iter().map(|row| (row.info, row.entries)).collect())
}

/// Returns the tape that `asked` names.
pub fn meant(connection: &Connection, asked: &str) -> Result<TapeRow, SqliteFailure> {
    let sql = "SELECT id FROM tapes WHERE hidden_since IS NULL
        AND (id = ?1 OR ?1 = ?2 OR substr(id, 1, length(?1)) = ?1)
        ORDER BY id <> ?1, started DESC, id DESC LIMIT ?3";
    let mut select = connection.prepare_cached(sql)?;
    let found = select
        .query_map(params![asked, tape_row::LAST, tape_row::SHOWN as i64], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    let id = tape_row::choose(asked, found)?;
    let sql = format!("SELECT {COLUMNS} FROM tapes WHERE id = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([id], read)?)
}

/// Returns the sessions of a tape, by number.
pub fn sessions(connection: &Connection, asked: &str) -> Result<Vec<(u64, SessionInfo)>, SqliteFailure> {
    let tape = meant(connection, asked)?.number;
    sessions_of(connection, tape)
}

/// Returns the sessions of the tape with this number, by their own.
pub fn sessions_of(connection: &Connection, tape: i64) -> Result<Vec<(u64, SessionInfo)>, SqliteFailure> {
    let sql =
        "SELECT number, external, client, client_version, revision, transport, proof, address, claims FROM sessions
        WHERE tape = ?1 ORDER BY number";
    let mut select = connection.prepare_cached(sql)?;
    let read = |row: &Row<'_>| -> Result<(u64, SessionInfo), SqliteFailure> {
        let claims =
            row.get_ref(8)?.as_blob_or_null().map_err(|_| DecodeError("the claims of a session are not a blob"))?;
        let info = SessionInfo {
            external: row.get(1)?,
            client: row.get(2)?,
            client_version: row.get(3)?,
            revision: row.get(4)?,
            transport: row.get(5)?,
            proof: row.get(6)?,
            address: row.get(7)?,
            claims: unpack_claims(claims)?,
        };
        Ok((row.get::<_, i64>(0)? as u64, info))
    };
    let mut rows = select.query([tape])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push(read(row)?);
    }
    Ok(sessions)
}

/// Stores the description of a session. A later one replaces an earlier one.
pub fn keep_session(
    connection: &Connection,
    tape: i64,
    number: u64,
    info: &SessionInfo,
    at: u64,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO sessions (tape, number, external, client, client_version, revision, transport, began,
        proof, address, claims) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
        ON CONFLICT (tape, number) DO UPDATE SET external = excluded.external, client = excluded.client,
        client_version = excluded.client_version, revision = excluded.revision, transport = excluded.transport,
        proof = excluded.proof, address = excluded.address, claims = excluded.claims";
    connection.prepare_cached(sql)?.execute(params![
        tape,
        number as i64,
        info.external,
        info.client,
        info.client_version,
        info.revision,
        info.transport,
        at as i64,
        info.proof,
        info.address,
        pack_claims(&info.claims),
    ])?;
    Ok(())
}

/// Sets the end of a session.
pub fn end_session(connection: &Connection, tape: i64, number: u64, at: u64) -> rusqlite::Result<()> {
    let sql = "UPDATE sessions SET ended = ?3 WHERE tape = ?1 AND number = ?2";
    connection.prepare_cached(sql)?.execute(params![tape, number as i64, at as i64])?;
    Ok(())
}
