//! `/api/v1/tools`: the tools that the caller is shown, each with its backend and how the operator labelled that.

use super::{Served, ok};
use crate::pipe::Pipe;
use crate::tool_list::ToolList;
use http::StatusCode;
use signalbox_transport::router::{Answered, Problem, Request};
use std::sync::Arc;

pub(super) async fn list(served: Arc<Served>, request: Request) -> Answered {
    let failed = |error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error);
    let gateway = &served.app().gateway;
    let mut pipe = Pipe::open(gateway, request.caller.clone()).await.map_err(failed)?;
    let tools = ToolList::ask(&mut pipe, gateway, &served.reloader.current()).await.map_err(failed)?;
    Ok(ok(&tools.to_json()))
}
