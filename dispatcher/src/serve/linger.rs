//! A socket that is closed the way its client can follow: an answer that comes before the request
//! has been read whole (too large, not allowed) would be torn down with the connection if what is
//! still on its way met a closed socket (RFC 9112, section 9.6).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A client that goes on sending is listened to for so long, and for so many bytes.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 32 << 20;

/// Says goodbye at `shutdown`, and then hears the client out.
pub(super) struct Lingering<S> {
    stream: S,
    /// Since we have said goodbye: until when we listen.
    until: Option<Pin<Box<Sleep>>>,
    heard: usize,
}

impl<S> Lingering<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, until: None, heard: 0 }
    }
}

impl<S: AsyncRead + Unpin> Lingering<S> {
    /// Ready when the client has ended too, or when it has gone on for too long.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut scrap = [0; 16 << 10];
        while self.heard < LINGER_BYTES_MAX {
            if self.until.as_mut().is_some_and(|until| until.as_mut().poll(context).is_ready()) {
                break;
            }
            let mut buffer = ReadBuf::new(&mut scrap);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => self.heard += buffer.filled().len(),
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.until.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.until = Some(Box::pin(sleep(LINGER)));
        }
        self.poll_end(context).map(Ok)
    }
}
