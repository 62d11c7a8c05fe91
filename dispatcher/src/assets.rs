//! Files in the binary: the console at `/`, and the page of each problem.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rust_embed::{EmbeddedFile, RustEmbed};
use schemas::problem::Code;

use crate::answer::{Refused, method_not_allowed};
use crate::routes::Route;

#[derive(RustEmbed)]
#[folder = "console/"]
struct Console;

#[derive(RustEmbed)]
#[folder = "../ops/runbooks/"]
struct Runbooks;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/problems/{code}", get(problem))
            .open()
            .summary("What a problem code means and what to do about it.")
            .answers_text(200, "text/markdown")
            .refuses(&[Code::NotFound]),
    ]
}

async fn problem(code: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Response {
    // A path that is not UTF-8 names no code.
    let page = code.ok().and_then(|Path(code)| Code::parse(&code)).and_then(runbook);
    match page {
        Some(file) => answer(&file, "text/markdown; charset=utf-8", &headers),
        None => {
            Refused::new(Code::NotFound, "There is no such problem code; /openapi.json lists them.").into_response()
        }
    }
}

/// The page of a code; every code has one.
pub fn runbook(code: Code) -> Option<EmbeddedFile> {
    Runbooks::get(&format!("{}.md", code.as_str()))
}

/// Whatever no route is for: a file of the console, or nothing.
pub async fn console(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let path = match uri.path() {
        "/" => "index.html",
        other => other.trim_start_matches('/'),
    };
    let Some(file) = Console::get(path) else {
        let detail = format!("There is nothing at {}; /openapi.json lists what there is.", clip(uri.path()));
        return Refused::new(Code::NotFound, detail).into_response();
    };
    if !matches!(method, Method::GET | Method::HEAD) {
        let allow = [(header::ALLOW, "GET,HEAD")];
        return (allow, method_not_allowed(method, uri).await).into_response();
    }
    let media_type = file.metadata.mimetype().to_owned();
    let text = media_type.starts_with("text/") && !media_type.contains("charset");
    answer(&file, &if text { format!("{media_type}; charset=utf-8") } else { media_type }, &headers)
}

/// A file, unless the client has this very one.
fn answer(file: &EmbeddedFile, media_type: &str, headers: &HeaderMap) -> Response {
    let digest = file.metadata.sha256_hash();
    let tag: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == tag.as_bytes());
    // Files change with the binary only, but then at once.
    let caching = [(header::ETAG, tag), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if known {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(header::CONTENT_TYPE, media_type.to_owned())], file.data.to_vec()).into_response()
}

fn clip(text: &str) -> String {
    text.chars().take(200).collect()
}
