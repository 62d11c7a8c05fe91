//! Reads one web page.

use std::time::Duration;

use url::Url;

use super::{DOCUMENT_BYTES_MAX, Read, text};
use crate::attempts;
use crate::call::{CallError, Class};
use crate::clock;
use crate::net::{self, Net, body};
use domain::retry::HTTP;

const PAGE_MS_MAX: u64 = 30_000;

/// Reads a page, with a few attempts. What goes wrong is the reason to skip it.
pub async fn load(net: &Net, url: &Url) -> Read {
    let schedule = domain::retry::Schedule { timeout_ms: PAGE_MS_MAX, ..HTTP };
    match attempts::run(schedule, |_| true, || fetch(net, url)).await {
        Err((error, _)) => Read::Skipped { reason: error.message, bytes: 0 },
        Ok((bytes, truncated, kind)) => {
            let size = bytes.len() as u64;
            let name = if kind.contains("html") { "page.html" } else { url.path() };
            match text::of(&bytes, name) {
                Ok(text) => Read::Text { text, bytes: size, truncated },
                Err(reason) => Read::Skipped { reason: reason.to_owned(), bytes: size },
            }
        }
    }
}

async fn fetch(net: &Net, url: &Url) -> Result<(Vec<u8>, bool, String), CallError> {
    let place = net::shown(url);
    let call = net.pages.get(url.clone()).header("accept", "text/html, text/*;q=0.9, */*;q=0.5");
    let call = call.timeout(Duration::from_millis(PAGE_MS_MAX));
    let response = call.send().await.map_err(|error| net::classify(error, &place))?;
    let status = response.status();
    if !status.is_success() {
        let class = match status.as_u16() {
            408 | 429 | 500.. => Class::Overloaded,
            _ => Class::Invalid,
        };
        let asked = net::retry_after_ms(response.headers(), clock::now_ms());
        return Err(CallError::new(class, format!("{place}: it was answered with status {status}")).retry_after(asked));
    }
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or("").to_owned();
    let (bytes, truncated) = body::read_up_to(response, DOCUMENT_BYTES_MAX, &place).await?;
    Ok((bytes.to_vec(), truncated, kind))
}
