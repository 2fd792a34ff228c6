//! Reading the whole body of a response, within a bound.

use super::conn::{Conn, HttpError};
use bytes::{Bytes, BytesMut};

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("a body larger than {0} bytes")]
    TooLarge(usize),
    #[error("{0}")]
    Broken(HttpError),
}

/// The whole body. One whose length is known, or that came in a single piece, is not copied.
pub(crate) async fn whole(conn: &mut Conn, max: usize) -> Result<Bytes, BodyError> {
    if let Some(announced) = conn.announced() {
        let length = usize::try_from(announced).ok().filter(|length| *length <= max);
        conn.gather(length.ok_or(BodyError::TooLarge(max))?).await.map_err(BodyError::Broken)?;
    }
    let mut first = Bytes::new();
    let mut joined: Option<BytesMut> = None;
    while let Some(data) = conn.frame().await {
        let data = data.map_err(BodyError::Broken)?;
        let length = joined.as_ref().map_or(first.len(), BytesMut::len);
        if length + data.len() > max {
            return Err(BodyError::TooLarge(max));
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
