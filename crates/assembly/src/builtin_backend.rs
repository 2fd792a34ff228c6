//! Backends inside this program.

use crate::assemble::{DEMO, uses_demo};
use crate::recording::StorePlace;
use signalbox_config::{BackendTarget, Builtin, Config};
use signalbox_engine::record::StoreError;
use signalbox_runtime::{BoxFuture, Connector};
use signalbox_tape_tools::TapeTools;
use signalbox_transport::in_process::{InProcessConnector, ServerChannels};
use std::collections::HashSet;
use std::sync::Arc;

/// Returns a connector to a server inside this program.
pub(crate) fn connector(config: &Config, name: &str, builtin: Builtin) -> Arc<dyn Connector> {
    match builtin {
        Builtin::Tapes => {
            let place = StorePlace::of(&config.record, &config.data_dir);
            let tools = TapeTools::new(name, Box::new(move || existing(&place)));
            Arc::new(InProcessConnector::new(name, move |visitor| serve(tools.clone(), visitor)))
        }
    }
}

/// Serves a caller's own tapes. A caller without a principal could see nothing and gets no server.
fn serve(tools: TapeTools, visitor: ServerChannels) -> BoxFuture<()> {
    match visitor.principal {
        Some(principal) => Box::pin(tools.serve(principal, visitor.incoming, visitor.outgoing)),
        None => Box::pin(std::future::ready(())),
    }
}

/// Opens an existing store. Unlike [`StorePlace::open`] it does not create one.
fn existing(place: &StorePlace) -> Result<Arc<dyn signalbox_engine::record::TapeStore>, StoreError> {
    if let StorePlace::Sqlite(path) = place
        && !path.exists()
    {
        let why = "nothing was recorded yet; see `record.enabled`".to_owned();
        return Err(StoreError::Open { place: path.display().to_string(), why });
    }
    place.open()
}

/// Returns the backends whose messages the tape keeps as outlines only, because they answer with recorded messages.
pub(crate) fn withheld(config: &Config) -> Vec<Arc<str>> {
    let asks = |target: &BackendTarget| matches!(target, BackendTarget::Builtin(Builtin::Tapes));
    let backends = config.backends.iter().filter(|backend| asks(&backend.target));
    backends.map(|backend| Arc::from(backend.name.as_str())).collect()
}

/// Returns the names of the backends that are part of this program. The relay is one of them: it describes its tools to
/// each era in another way, and pages bring theirs anew each time.
pub(crate) fn own_names(config: &Config) -> HashSet<String> {
    let own = config.backends.iter().filter(|backend| matches!(backend.target, BackendTarget::Builtin(_)));
    let demo = uses_demo(config).then(|| DEMO.to_owned());
    let relay = config.relay.is_some().then(|| signalbox_relay::BACKEND.to_owned());
    own.map(|backend| backend.name.clone()).chain(demo).chain(relay).collect()
}
