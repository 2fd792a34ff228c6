//! Reading the whole body of a response, within a bound.

use super::conn::Conn;
use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};

/// Most bytes that are set aside on the word of a `Content-Length`.
const MAX_RESERVED: usize = 1024 * 1024;

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("a body larger than {0} bytes")]
    TooLarge(usize),
    #[error("{0}")]
    Broken(hyper::Error),
}

/// The whole body. One that came in a single frame, as small ones do, is not copied.
pub(crate) async fn whole(conn: &mut Conn, body: &mut Incoming, max: usize) -> Result<Bytes, BodyError> {
    let announced = body.size_hint().lower();
    if announced > max as u64 {
        return Err(BodyError::TooLarge(max));
    }
    let mut first = Bytes::new();
    let mut joined: Option<BytesMut> = None;
    while !body.is_end_stream() {
        let Some(frame) = conn.frame(body).await else {
            break;
        };
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else {
            continue;
        };
        let length = joined.as_ref().map_or(first.len(), BytesMut::len);
        if length + data.len() > max {
            return Err(BodyError::TooLarge(max));
        }
        match &mut joined {
            Some(joined) => joined.extend_from_slice(&data),
            None if first.is_empty() => first = data,
            None => {
                let room = usize::try_from(announced).unwrap_or(max).min(MAX_RESERVED);
                let mut both = BytesMut::with_capacity(room.max(first.len() + data.len()));
                both.extend_from_slice(&first);
                both.extend_from_slice(&data);
                joined = Some(both);
            }
        }
    }
    Ok(joined.map_or(first, BytesMut::freeze))
}
