//! `POST /api/dead/redrive`, `POST /api/dead/drop`: one thing for all of them. There may be very many, so the answer
//! comes line by line, and says now and then how far it is. It ends with its reader.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use domain::action::fields::{Object, Problems, kind_of, wrong};
use domain::failure::Failure;
use domain::ports::{Deed, Scope, Sweep, Swept, Told};
use futures::Stream;
use futures::future::BoxFuture;
use futures::stream;
use schemas::api::DeadSweepView;
use schemas::json::Json;
use schemas::problem::{Code, Problem};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, Refused};
use crate::caller::Caller;
use crate::extract::JsonBody;
use crate::gateway::Gateway;
use crate::routes::Route;

const TELL_EVERY: Duration = Duration::from_millis(500);
const REASON_BYTES_MAX: usize = 1_000;
const FIELDS: &[&str] = &["all", "reason"];
const EXAMPLE: &str = "{\"all\": true}";

type Ended = Result<Swept, Failure>;

pub fn routes() -> Vec<Route> {
    let of = |path, handler, summary| {
        Route::post(path, handler)
            .scope(Scope::Admin)
            .long()
            .summary(summary)
            .body("DeadSweepBody")
            .answers_lines(200, "DeadSweepView")
            .refuses(&[Code::InvalidRequest, Code::InvalidJson, Code::TooLarge])
    };
    vec![
        of(
            "/api/dead/redrive",
            post(redrive),
            "Send back all that lie there now, or those of a reason. A line of JSON tells now and then how far it is, \
             and the last one how it ended; closed before that, it ends, and the others stay.",
        ),
        of(
            "/api/dead/drop",
            post(discard),
            "Throw away all that lie there now, or those of a reason. A line of JSON tells now and then how far it is, \
             and the last one how it ended; closed before that, it ends, and the others stay.",
        ),
    ]
}

async fn redrive(State(gateway): State<Gateway>, caller: Caller, body: JsonBody) -> Answer<Response> {
    sweep(&gateway, &caller, body, Deed::Redrive).await
}

async fn discard(State(gateway): State<Gateway>, caller: Caller, body: JsonBody) -> Answer<Response> {
    sweep(&gateway, &caller, body, Deed::Discard).await
}

async fn sweep(gateway: &Gateway, caller: &Caller, body: JsonBody, deed: Deed) -> Answer<Response> {
    let reason = parse(&body.required()?)?;
    // At the beginning, too: whoever hangs up does not hear how it ends.
    tracing::info!(by = %caller.name, ?deed, reason, "dead letters are attended to");
    let (progress, news) = watch::channel(Swept::default());
    let told: Told = Arc::new(move |swept| {
        progress.send_replace(swept);
    });
    let dead = gateway.dead.clone();
    let mut going = Going {
        walk: Box::pin(async move { dead.sweep(Sweep { deed, reason }, told).await }),
        news,
        stop: gateway.stop.clone(),
        done: match deed {
            Deed::Redrive => "redriven",
            Deed::Discard => "dropped",
        },
        by: caller.clone(),
    };
    let ended = tokio::select! {
        biased;
        ended = &mut going.walk => Some(ended),
        _ = going.news.changed() => None,
    };
    match ended {
        // Nothing has begun: it is refused like everything else.
        Some(Err(failure)) if *going.news.borrow() == Swept::default() => Err(failure.into()),
        ended => Ok(answer(lines(going, ended))),
    }
}

/// The reason, if the body names one.
fn parse(body: &Value) -> Result<Option<String>, Box<Problem>> {
    let Some(map) = body.as_object() else {
        return Err(wrong("body", format!("must be a JSON object such as {EXAMPLE}, not {}", kind_of(body))));
    };
    let (object, mut problems) = (Object::new("", map), Problems::default());
    object.refuse_unknown(FIELDS, &mut problems);
    if object.boolean("all", &mut problems) != Some(true) {
        problems.add("all", "must be true; for one letter there is POST /api/dead/{id}/redrive, or drop");
    }
    let reason = object.text("reason", REASON_BYTES_MAX, &mut problems).map(str::to_owned);
    problems.into_result()?;
    Ok(reason)
}

fn answer(lines: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    // Proxies that buffer would show everything at the end.
    let unbuffered = (HeaderName::from_static("x-accel-buffering"), "no");
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson"), unbuffered];
    (headers, Body::from_stream(lines)).into_response()
}

/// A walk over the dead letters; dropped, it ends.
struct Going {
    walk: BoxFuture<'static, Ended>,
    news: watch::Receiver<Swept>,
    stop: CancellationToken,
    done: &'static str,
    by: Caller,
}

fn lines(going: Going, ended: Option<Ended>) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    stream::unfold(Some((going, ended)), |state| async move {
        let (mut going, ended) = state?;
        let ended = match ended {
            Some(ended) => Some(ended),
            None => going.wait().await,
        };
        let line = going.line(ended.as_ref());
        Some((Ok(line), ended.is_none().then_some((going, None))))
    })
}

impl Going {
    /// Until it has ended, or until it is time for a line.
    async fn wait(&mut self) -> Option<Ended> {
        tokio::select! {
            biased;
            ended = &mut self.walk => Some(ended),
            () = self.stop.cancelled() => Some(Err(Failure::unavailable("this dispatcher ends"))),
            () = self.by.revoked.cancelled() => Some(Err(Failure::unavailable("the token was revoked"))),
            () = tokio::time::sleep(TELL_EVERY) => None,
        }
    }

    fn line(&self, ended: Option<&Ended>) -> Bytes {
        let swept = match ended {
            Some(Ok(swept)) => *swept,
            _ => *self.news.borrow(),
        };
        let error = ended.and_then(|ended| ended.as_ref().err()).map(told);
        if ended.is_some() {
            tracing::info!(by = %self.by.name, done = self.done, ?swept, error = error.as_deref(), "dead letters were attended to");
        }
        let view = DeadSweepView {
            done: self.done.to_owned(),
            letters: swept.done,
            kept: swept.kept,
            stuck: swept.stuck,
            finished: matches!(ended, Some(Ok(_))),
            error,
        };
        Bytes::from(format!("{}\n", Json::of(&view).as_str()))
    }
}

/// Insides are for the log.
fn told(failure: &Failure) -> String {
    match failure.code {
        Code::Internal => Refused::from(failure.clone()).0.detail,
        _ => failure.message.clone(),
    }
}
