//! `audit verify --database` notices a change of every column that a record says something about, and of the rows
//! of calls.

use crate::postgres_server::PostgresServer;
use crate::tampering::verified;
use crate::{config, database_url, greet, search, session};
use signalbox_testkit::gateway::GatewayProcess;
use std::path::Path;

/// Columns that the database gives, and no record tells of.
const OWN: [&str; 2] = ["id", "created_at"];

enum Database {
    Sqlite(rusqlite::Connection),
    Postgres(postgres::Client),
}

impl Database {
    fn run(&mut self, sql: &str) {
        match self {
            Self::Sqlite(database) => database.execute_batch(sql).unwrap(),
            Self::Postgres(database) => database.batch_execute(sql).unwrap(),
        }
    }

    /// The columns of a table with their types, in lower case.
    fn columns(&mut self, table: &str) -> Vec<(String, String)> {
        match self {
            Self::Sqlite(database) => {
                let mut select = database.prepare("SELECT name, lower(type) FROM pragma_table_info(?1)").unwrap();
                let rows = select.query_map([table], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
                rows.map(Result::unwrap).collect()
            }
            Self::Postgres(database) => {
                let sql =
                    "SELECT column_name::text, data_type::text FROM information_schema.columns WHERE table_name = $1";
                database.query(sql, &[&table]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
            }
        }
    }
}

/// Another value of a column of this type.
fn forged(column: &str, kind: &str) -> String {
    match (column, kind) {
        ("timestamp", "text") => "'2026-01-01T00:00:00.000Z'".to_owned(),
        (_, "text") if column == "request_args" => r#"'{"name":"Eve"}'"#.to_owned(),
        (_, "jsonb") => r#"'{"name":"Eve"}'::jsonb"#.to_owned(),
        (_, "integer" | "bigint") => format!("{column} + 1000"),
        (_, "timestamp with time zone") => format!("{column} + interval '1 millisecond'"),
        _ => "'forged'".to_owned(),
    }
}

/// Calls that are answered and one that is refused, in a folder whose gateway has ended.
async fn calls(url: &str) -> tempfile::TempDir {
    let text = config("payloads = true", &format!("file_sink = false\ndatabase_url = \"{url}\"\n"));
    let gateway = GatewayProcess::serve(&text).await.unwrap();
    let client = session(&gateway).await;
    for id in 0..5 {
        greet(&client, id, if id == 4 { "forbidden" } else { "Ada" }).await;
    }
    search(&gateway, &["--database", "--type", "tool_invocation"], 9).await;
    gateway.terminate().await.unwrap()
}

/// Changes each column and row in turn, and puts it back.
fn every_change_is_noticed(folder: &Path, database: &mut Database) {
    let verify = |what: &str| {
        let (code, said) = verified(folder, &["--database"]);
        (code, format!("{what}: {said}"))
    };
    let call = "id = (SELECT min(id) FROM audit_log WHERE response_status = 'success')";
    let record = "seq = (SELECT min(seq) FROM audit_record WHERE correlation_id IS NOT NULL AND backend IS NOT NULL)";
    let (code, said) = verify("nothing");
    assert_eq!(code, Some(0), "{said}");
    for (table, row) in [("audit_log", call), ("audit_record", record)] {
        database.run(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}"));
        let columns = database.columns(table);
        assert!(columns.len() >= 9, "{columns:?}");
        let mut changes: Vec<(String, String)> = Vec::new();
        for (column, kind) in columns.iter().filter(|(column, _)| !OWN.contains(&column.as_str())) {
            let forged = forged(column, kind);
            changes.push((column.clone(), format!("UPDATE {table} SET {column} = {forged} WHERE {row}")));
        }
        if table == "audit_log" {
            let copied: Vec<&str> =
                columns.iter().map(|(name, _)| name.as_str()).filter(|name| !OWN.contains(name)).collect();
            let copied = copied.join(", ");
            let copy = format!("INSERT INTO audit_log ({copied}) SELECT {copied} FROM audit_log WHERE {row}");
            changes.push(("no record tells".to_owned(), copy));
            changes.push(("is missing".to_owned(), format!("DELETE FROM audit_log WHERE {row}")));
            let nobody = format!("UPDATE audit_log SET client_subject = NULL WHERE {row}");
            changes.push(("client_subject".to_owned(), nobody));
            let refused = "UPDATE audit_log SET request_args = '{}' WHERE response_status = 'denied'";
            changes.push(("request_args".to_owned(), refused.to_owned()));
            // Attack F4: SQLite keeps the text, and its JSON functions read the last of doubled members. PostgreSQL
            // keeps the value.
            let same = [
                r#"{"name":"Ada","name":"Eve"}"#,
                r#"{"name":"Eve","name":"Ada"}"#,
                r#"{"name": "Ada"}"#,
                r#"{"name":"\u0041da"}"#,
            ];
            for text in same.iter().filter(|_| matches!(database, Database::Sqlite(_))) {
                let change = format!("UPDATE audit_log SET request_args = '{text}' WHERE {row}");
                changes.push(("request_args".to_owned(), change));
            }
        }
        for (part, change) in changes {
            database.run(&change);
            let (code, said) = verify(&change);
            // A record that was changed is named as that, and one that was given another number is not where it was.
            let named = said.contains(&part) || ["record", "chain", "seq"].contains(&part.as_str());
            assert!(code == Some(1) && named, "{code:?} {said}");
            database.run(&format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table}"));
        }
        let (code, said) = verify("everything is back");
        assert_eq!(code, Some(0), "{said}");
    }
    // A process that ends between intent and outcome leaves such a row.
    database.run(&format!("UPDATE audit_log SET request_args = NULL WHERE {call}"));
    let (code, said) = verify("without arguments");
    assert!(code == Some(0) && said.contains("1 rows of audit_log without the arguments"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_any_column_of_sqlite_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("audit.db");
    let folder = calls(&format!("sqlite:{}", path.display())).await;
    let mut database = Database::Sqlite(rusqlite::Connection::open(&path).unwrap());
    tokio::task::block_in_place(|| every_change_is_noticed(folder.path(), &mut database));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_any_column_of_postgresql_is_noticed() {
    let Some(server) = tokio::task::block_in_place(PostgresServer::start) else { return };
    let address = tokio::task::block_in_place(|| server.database());
    let folder = calls(&database_url(&address)).await;
    tokio::task::block_in_place(|| {
        let mut client = postgres::Client::connect(&address, postgres::NoTls).unwrap();
        client.batch_execute("SET search_path = signalbox").unwrap();
        every_change_is_noticed(folder.path(), &mut Database::Postgres(client));
    });
}
