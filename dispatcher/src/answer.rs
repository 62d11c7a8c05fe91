//! Answers that are refusals: problem documents (RFC 9457).

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::failure::{Certainty, Failure};
use domain::outage::Seldom;
use schemas::problem::{Code, FieldProblem, Problem};

pub const PROBLEM_JSON: &str = "application/problem+json";

/// A refusal on its way to the client.
#[derive(Debug)]
pub struct Refused(pub Box<Problem>);

pub type Answer<T> = Result<T, Refused>;

impl Refused {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    pub fn field(name: &str, message: impl Into<String>) -> Self {
        Problem::fields(Code::InvalidRequest, vec![FieldProblem::new(name, message)]).into()
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl From<Box<Problem>> for Refused {
    fn from(problem: Box<Problem>) -> Self {
        Self(problem)
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        // A person must look: the message is for the log, it may show insides.
        if failure.code == Code::Internal {
            tracing::error!(error = %failure.message, "request failed");
            return Self::new(Code::Internal, "The log of the dispatcher has the details.");
        }
        tell(&failure);
        let doubt = match failure.certainty {
            Certainty::DidNotHappen => "",
            Certainty::MayHaveHappened => " It may have been accepted: repeat it with the same action_id.",
        };
        Self::new(failure.code, format!("{}.{doubt}", failure.message.trim_end_matches('.')))
    }
}

/// Requests that failed because a service is away: then they fail by the thousand.
static UNAVAILABLE: LazyLock<(Instant, Mutex<Seldom>)> = LazyLock::new(|| (Instant::now(), Mutex::default()));

fn tell(failure: &Failure) {
    let line = match failure.code {
        Code::Unavailable => {
            let (begun, told) = &*UNAVAILABLE;
            told.lock().unwrap_or_else(PoisonError::into_inner).see(begun.elapsed())
        }
        _ => Some(0),
    };
    if let Some(left_out) = line {
        tracing::warn!(code = failure.code.as_str(), error = %failure.message, left_out, "request failed");
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let problem = *self.0;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = schemas::json::Json::of(&problem);
        let mut response = (status, body.as_str().to_owned()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"stepfleet\""));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

/// Answers the path's own unknowns.
pub async fn method_not_allowed(method: axum::http::Method, uri: axum::http::Uri) -> Refused {
    let detail =
        format!("{method} is not for {}; /openapi.json lists what is, and so does the header Allow", uri.path());
    Refused::new(Code::MethodNotAllowed, detail)
}
