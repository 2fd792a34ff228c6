//! The heads of tapes, and their sessions.

use super::Failure;
use super::row::{escape, unescape};
use crate::around::{pack_claims, unpack_claims};
use crate::tape_row::{self, TapeRow};
use ::postgres::{Client, GenericClient, Row};
use foldhash::HashMap;
use signalbox_engine::record::{SessionInfo, StoreError, TapeInfo, TapeKind};

const COLUMNS: &str = "number, id, kind, target, started, ended, program, redaction, sampling, entries,
    coalesce(first_at, started), coalesce(last_at, started), last_seq, disordered, kept, parent, seal, aside";

fn read(row: &Row) -> TapeRow {
    let number = |place: usize| row.get::<_, i64>(place) as u64;
    let text = |place: usize| unescape(row.get(place));
    let info = TapeInfo {
        id: text(1),
        // Only a later version could have stored a kind that is unknown here.
        kind: TapeKind::of_word(row.get(2)).unwrap_or(TapeKind::Serve),
        target: text(3),
        started: number(4),
        ended: row.get::<_, Option<i64>>(5).map(|at| at as u64),
        program: text(6),
        redaction: text(7).lines().map(str::to_owned).collect(),
        sampling: text(8),
        parent: row.get::<_, Option<String>>(15).map(unescape),
        seal: row.get::<_, Option<Vec<u8>>>(16).map(Vec::into_boxed_slice),
    };
    let last_seq = number(12);
    TapeRow {
        number: row.get(0),
        info,
        entries: number(9),
        first_at: number(10),
        last_at: number(11),
        last_seq,
        disordered: row.get(13),
        // Words are stored together with their entries.
        indexed: last_seq,
        kept: number(14),
        aside: number(17),
        rest: 0,
    }
}

/// Stores a head. Keeps the number of a tape that had one before.
pub fn insert(
    client: &mut impl GenericClient,
    tape: &TapeInfo,
    number: Option<i64>,
    hidden_since: Option<i64>,
) -> Result<i64, Failure> {
    let number = match number {
        Some(number) => number,
        None => client.query_one("SELECT nextval(pg_get_serial_sequence('signalbox.tapes', 'number'))", &[])?.get(0),
    };
    let sql = "INSERT INTO tapes (number, id, kind, target, started, ended, program, redaction, sampling, hidden_since,
        parent, seal) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO NOTHING";
    let kept = client.execute(
        sql,
        &[
            &number,
            &escape(&tape.id),
            &tape.kind.word(),
            &escape(&tape.target),
            &(tape.started as i64),
            &tape.ended.map(|at| at as i64),
            &escape(&tape.program),
            &escape(&tape.redaction.join("\n")),
            &escape(&tape.sampling),
            &hidden_since,
            &tape.parent.as_deref().map(escape),
            &tape.seal.as_deref(),
        ],
    )?;
    if kept == 0 {
        return Err(StoreError::Query(format!("tape {} already exists", tape.id)).into());
    }
    Ok(number)
}

/// Returns the seal of a tape, locked until the transaction ends; `None` if there is no sealed tape.
pub fn lock_seal(client: &mut impl GenericClient, number: i64) -> Result<Option<Vec<u8>>, Failure> {
    let row = client.query_opt("SELECT seal FROM tapes WHERE number = $1 FOR UPDATE", &[&number])?;
    Ok(row.and_then(|row| row.get(0)))
}

/// Replaces the seal of a tape.
pub fn set_seal(client: &mut impl GenericClient, number: i64, seal: &[u8]) -> Result<(), Failure> {
    client.execute("UPDATE tapes SET seal = $2 WHERE number = $1", &[&number, &seal])?;
    Ok(())
}

/// Returns all visible tapes, newest first.
pub fn all(client: &mut Client) -> Result<Vec<TapeRow>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM tapes WHERE hidden_since IS NULL ORDER BY started DESC, id DESC");
    Ok(client.query(&sql, &[])?.iter().map(read).collect())
}

/// Returns all visible tapes, newest first, with the size of everything they store.
pub fn weighed(client: &mut Client) -> Result<Vec<TapeRow>, Failure> {
    let columns = ["external", "client", "client_version", "revision", "transport", "proof", "address", "claims"];
    let size = columns.map(|column| format!("coalesce(octet_length({column}), 0)")).join(" + ");
    let sql = format!(
        "SELECT tape, sum(size)::bigint FROM (SELECT tape, {size} AS size FROM sessions
        UNION ALL SELECT tape, octet_length(method) FROM notifications) AS sizes GROUP BY tape"
    );
    let sizes: HashMap<i64, i64> = client.query(&sql, &[])?.iter().map(|row| (row.get(0), row.get(1))).collect();
    let mut tapes = all(client)?;
    for tape in &mut tapes {
        tape.rest = sizes.get(&tape.number).map_or(0, |size| *size as u64);
    }
    Ok(tapes)
}

/// Returns the tape that `asked` names.
pub fn meant(client: &mut Client, asked: &str) -> Result<TapeRow, Failure> {
    let sql = "SELECT id FROM tapes WHERE hidden_since IS NULL AND ($1 = $2 OR starts_with(id, $1))
        ORDER BY id <> $1, started DESC, id DESC LIMIT $3";
    let rows = client.query(sql, &[&escape(asked), &tape_row::LAST, &(tape_row::SHOWN as i64)])?;
    let id = tape_row::choose(asked, rows.iter().map(|row| unescape(row.get(0))).collect())?;
    let sql = format!("SELECT {COLUMNS} FROM tapes WHERE id = $1");
    let row = client.query_opt(&sql, &[&escape(&id)])?;
    row.map(|row| read(&row)).ok_or_else(|| StoreError::NoTape(id).into())
}

/// Returns the sessions of a tape, by number.
pub fn sessions(client: &mut Client, asked: &str) -> Result<Vec<(u64, SessionInfo)>, Failure> {
    let tape = meant(client, asked)?.number;
    sessions_of(client, tape)
}

/// Returns the sessions of the tape with this number, by their own.
pub fn sessions_of(client: &mut impl GenericClient, tape: i64) -> Result<Vec<(u64, SessionInfo)>, Failure> {
    let sql =
        "SELECT number, external, client, client_version, revision, transport, proof, address, claims FROM sessions
        WHERE tape = $1 ORDER BY number";
    let read = |row: &Row| -> Result<(u64, SessionInfo), Failure> {
        let text = |place: usize| row.get::<_, Option<String>>(place).map(unescape);
        let info = SessionInfo {
            external: text(1),
            client: text(2),
            client_version: text(3),
            revision: text(4),
            transport: unescape(row.get(5)),
            proof: text(6),
            address: text(7),
            claims: unpack_claims(row.get(8))?,
        };
        Ok((row.get::<_, i64>(0) as u64, info))
    };
    client.query(sql, &[&tape])?.iter().map(read).collect()
}

/// Stores the description of a session. A later one replaces an earlier one.
pub fn keep_session(
    client: &mut impl GenericClient,
    tape: i64,
    number: u64,
    info: &SessionInfo,
    at: u64,
) -> Result<(), Failure> {
    let sql = "INSERT INTO sessions (tape, number, external, client, client_version, revision, transport, began,
        proof, address, claims) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (tape, number) DO UPDATE SET external = excluded.external, client = excluded.client,
        client_version = excluded.client_version, revision = excluded.revision, transport = excluded.transport,
        proof = excluded.proof, address = excluded.address, claims = excluded.claims";
    client.execute(
        sql,
        &[
            &tape,
            &(number as i64),
            &info.external.as_deref().map(escape),
            &info.client.as_deref().map(escape),
            &info.client_version.as_deref().map(escape),
            &info.revision.as_deref().map(escape),
            &escape(&info.transport),
            &(at as i64),
            &info.proof.as_deref().map(escape),
            &info.address.as_deref().map(escape),
            &pack_claims(&info.claims),
        ],
    )?;
    Ok(())
}

/// Sets the end of a session.
pub fn end_session(client: &mut impl GenericClient, tape: i64, number: u64, at: u64) -> Result<(), Failure> {
    let sql = "UPDATE sessions SET ended = $3 WHERE tape = $1 AND number = $2";
    client.execute(sql, &[&tape, &(number as i64), &(at as i64)])?;
    Ok(())
}
