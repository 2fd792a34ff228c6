//! Reads the whole body of a response, within a limit.

use super::conn::{Conn, HttpError};
use crate::read_charge::ReadCharge;
use bytes::{Bytes, BytesMut};
use signalbox_engine::budget::{OverBudget, Share, WEIGHED};
use std::sync::Arc;

/// Reason why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResponseBodyError {
    #[error("a body larger than {0} bytes")]
    TooLarge(usize),
    #[error("{0}")]
    Broken(HttpError),
    #[error("a body for which there is no room: {0}")]
    NoRoom(OverBudget),
}

/// Reads the whole body. A body of known length, or one that arrives as a single piece, is not copied. A large one is
/// charged to `share`.
pub(crate) async fn whole(
    conn: &mut Conn,
    max: usize,
    share: impl FnOnce() -> Option<Arc<Share>>,
) -> Result<Bytes, ResponseBodyError> {
    let length = match conn.remaining_length() {
        None => None,
        Some(length) => {
            let length = usize::try_from(length).ok().filter(|length| *length <= max);
            Some(length.ok_or(ResponseBodyError::TooLarge(max))?)
        }
    };
    if length.is_none_or(|length| length >= WEIGHED)
        && let Some(share) = share()
    {
        return Box::pin(read_charged(conn, max, length, ReadCharge::new(Some(share)))).await;
    }
    if let Some(length) = length {
        conn.gather(length).await.map_err(ResponseBodyError::Broken)?;
    }
    rest(conn, max, None).await
}

async fn read_charged(
    conn: &mut Conn,
    max: usize,
    length: Option<usize>,
    mut charge: ReadCharge,
) -> Result<Bytes, ResponseBodyError> {
    if let Some(length) = length {
        charge.cover(length).await.map_err(ResponseBodyError::NoRoom)?;
        conn.gather(length).await.map_err(ResponseBodyError::Broken)?;
    }
    let body = rest(conn, max, Some(&mut charge)).await?;
    Ok(charge.give(body))
}

async fn rest(conn: &mut Conn, max: usize, mut charge: Option<&mut ReadCharge>) -> Result<Bytes, ResponseBodyError> {
    let mut first = Bytes::new();
    let mut joined: Option<BytesMut> = None;
    while let Some(data) = conn.frame().await {
        let data = data.map_err(ResponseBodyError::Broken)?;
        let length = joined.as_ref().map_or(first.len(), BytesMut::len);
        if length + data.len() > max {
            return Err(ResponseBodyError::TooLarge(max));
        }
        if let Some(charge) = &mut charge {
            charge.cover(length + data.len()).await.map_err(ResponseBodyError::NoRoom)?;
        }
        match &mut joined {
            Some(joined) => joined.extend_from_slice(&data),
            None if first.is_empty() => first = data,
            None => {
                let mut both = BytesMut::with_capacity(2 * (first.len() + data.len()));
                both.extend_from_slice(&first);
                both.extend_from_slice(&data);
                joined = Some(both);
            }
        }
    }
    Ok(joined.map_or(first, BytesMut::freeze))
}
