//! Backends that are part of this program.

use crate::recording::StorePlace;
use signalbox_config::{BackendTarget, Builtin, Config};
use signalbox_engine::record::StoreError;
use signalbox_runtime::{BoxFuture, Connector};
use signalbox_tape_tools::TapeTools;
use signalbox_transport::in_process::{InProcessConnector, Visitor};
use std::sync::Arc;

/// Connects to a server that is part of this program.
pub(crate) fn connector(config: &Config, name: &str, builtin: Builtin) -> Arc<dyn Connector> {
    match builtin {
        Builtin::Tapes => {
            let place = StorePlace::of(&config.record, &config.data_dir);
            let tools = TapeTools::new(name, Box::new(move || existing(&place)));
            Arc::new(InProcessConnector::new(name, move |visitor| serve(tools.clone(), visitor)))
        }
    }
}

/// Whoever comes without a principal gets no server, since it could see nothing.
fn serve(tools: TapeTools, visitor: Visitor) -> BoxFuture<()> {
    match visitor.principal {
        Some(principal) => Box::pin(tools.serve(principal, visitor.incoming, visitor.outgoing)),
        None => Box::pin(std::future::ready(())),
    }
}

/// Opens a store for reading, and makes none where there is none.
fn existing(place: &StorePlace) -> Result<Arc<dyn signalbox_engine::record::TapeStore>, StoreError> {
    if let StorePlace::Sqlite(path) = place
        && !path.exists()
    {
        let why = "nothing was recorded yet; see `record.enabled`".to_owned();
        return Err(StoreError::Open { place: path.display().to_string(), why });
    }
    place.open()
}

/// The backends of whose messages the tape keeps only the outline, since what they answer is on a tape already.
pub(crate) fn withheld(config: &Config) -> Vec<Arc<str>> {
    let asks = |target: &BackendTarget| matches!(target, BackendTarget::Builtin(Builtin::Tapes));
    let backends = config.backends.iter().filter(|backend| asks(&backend.target));
    backends.map(|backend| Arc::from(backend.name.as_str())).collect()
}
