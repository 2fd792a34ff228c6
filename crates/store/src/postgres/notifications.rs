//! The table with the counts of notifications received and sent, by method.

use super::Failure;
use super::row::{escape, unescape};
use crate::notifications::{CAME, NotificationCounts, Notifications, WENT, codes};
use crate::pack::DecodeError;
use ::postgres::{Client, GenericClient, Statement};
use std::borrow::Cow;

/// Definition of the table. A method may be too long for an index, so its digest is the key.
pub const TABLE: &str = "
CREATE TABLE notifications (
    tape BIGINT NOT NULL,
    method BYTEA NOT NULL,
    came BIGINT NOT NULL,
    went BIGINT NOT NULL
);
CREATE UNIQUE INDEX notifications_of ON notifications (tape, sha256(method));
";

/// Statement that adds the counts of a batch.
pub const KEEP: &str = "INSERT INTO notifications AS known (tape, method, came, went)
    SELECT $1, * FROM unnest($2::bytea[], $3::bigint[], $4::bigint[])
    ON CONFLICT (tape, sha256(method)) DO UPDATE SET
    came = known.came + excluded.came, went = known.went + excluded.went";

/// Returns SQL that counts the notifications of entries, by tape and method.
fn counted(condition: &str) -> String {
    let list = |codes: [u8; 2]| codes.map(|code| code.to_string()).join(", ");
    let (came, went) = (list(codes(CAME)), list(codes(WENT)));
    format!(
        "SELECT tape, convert_to(method, 'UTF8') AS method, count(*) FILTER (WHERE what IN ({came})) AS came,
        count(*) FILTER (WHERE what IN ({went})) AS went FROM tape_entries
        WHERE what IN ({came}, {went}) AND method IS NOT NULL AND {condition} GROUP BY tape, method"
    )
}

/// Adds the counts of a batch to those of its tape.
pub fn keep(
    client: &mut impl GenericClient,
    statement: &Statement,
    tape: i64,
    batch: &Notifications<&str>,
) -> Result<(), Failure> {
    if batch.is_empty() {
        return Ok(());
    }
    let methods: Vec<Cow<'_, str>> = batch.counts().map(|(method, _)| escape(method)).collect();
    let methods: Vec<&[u8]> = methods.iter().map(|method| method.as_bytes()).collect();
    let (came, went): (Vec<i64>, Vec<i64>) = batch.counts().map(|(_, [came, went])| (came, went)).unzip();
    client.execute(statement, &[&tape, &methods, &came, &went])?;
    Ok(())
}

/// Counts all notifications, for a store of a version that did not count them.
pub fn count_all(client: &mut impl GenericClient) -> Result<(), Failure> {
    client.execute(&format!("INSERT INTO notifications (tape, method, came, went) {}", counted("true")), &[])?;
    Ok(())
}

/// Subtracts the notifications below a position from the counts of their tape.
pub fn take_off(client: &mut impl GenericClient, tape: i64, below: i64) -> Result<(), Failure> {
    let sql = format!(
        "UPDATE notifications AS known SET came = known.came - gone.came, went = known.went - gone.went
        FROM ({}) AS gone WHERE known.tape = $1 AND sha256(known.method) = sha256(gone.method)",
        counted("tape = $1 AND seq < $2")
    );
    client.execute(&sql, &[&tape, &below])?;
    Ok(())
}

/// Adds the counts of these tapes to the totals by name.
pub fn add(client: &mut Client, tapes: &[i64], told: &mut NotificationCounts) -> Result<(), Failure> {
    let sql = "SELECT method, came, went FROM notifications WHERE tape = ANY($1) ORDER BY tape";
    for row in client.query(sql, &[&tapes])? {
        let method = String::from_utf8(row.get(0)).map_err(|_| DecodeError("a method is not valid UTF-8"))?;
        told.add(unescape(method), [row.get::<_, i64>(1) as u64, row.get::<_, i64>(2) as u64]);
    }
    Ok(())
}
