//! Shared connections that nobody uses any more.

use crate::client::{Modern, answer};
use crate::fake::{Fake, Shape, plain};
use crate::{Setup, pass, start};
use serde_json::json;
use signalbox_engine::Principal;
use signalbox_runtime::backend::idle::SHARED_IDLE;

#[tokio::test(start_paused = true)]
async fn the_connection_of_a_principal_who_came_once_ends_and_is_opened_again_when_he_comes_back() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    let visitor =
        || Modern { principal: Principal::certificate("ab"), capabilities: json!({}), ..Modern::askable(&gateway) };
    answer(&visitor().post("t1", &json!({}))).await.unwrap();
    let home = Modern { capabilities: json!({}), ..Modern::askable(&gateway) };
    answer(&home.post("t1", &json!({}))).await.unwrap();
    assert_eq!(fake.open_links().len(), 2, "one for the gateway's own principal, one for the visitor");
    let half = u64::try_from(SHARED_IDLE.as_millis()).unwrap() / 2;
    pass(half).await;
    answer(&visitor().post("t1", &json!({}))).await.unwrap();
    pass(half + 1_000).await;
    assert_eq!(fake.open_links().len(), 2, "it was used in between");
    // The clock of a gateway that nobody uses ticks every two seconds.
    pass(half + 3_000).await;
    assert_eq!(fake.open_links().len(), 1, "the gateway's own stays");
    answer(&visitor().post("t1", &json!({}))).await.unwrap();
    assert_eq!(fake.open_links().len(), 2);
}
