//! Bodies and ids of a request, refused with problem documents.

use std::str::FromStr;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use domain::action::fields;
use schemas::id::{DefinitionId, IdError};
use schemas::json::is_too_deep;
use schemas::limits::ACTION_BYTES_MAX;
use schemas::problem::Code;
use serde_json::Value;

use crate::answer::Refused;

/// The id in the path.
#[derive(Debug)]
pub struct PathId<T>(pub T);

impl<S, T> FromRequestParts<S> for PathId<T>
where
    S: Send + Sync,
    T: FromStr<Err = IdError>,
{
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        let Path(text) = path.map_err(|_| Refused::field("id", "in the path must be one id in UTF-8"))?;
        text.parse().map(Self).map_err(|error: IdError| Refused::field("id", format!("in the path {error}")))
    }
}

/// The two ids in the path.
#[derive(Debug)]
pub struct PathIds<A, B>(pub A, pub B);

impl<S, A, B> FromRequestParts<S> for PathIds<A, B>
where
    S: Send + Sync,
    A: FromStr<Err = IdError>,
    B: FromStr<Err = IdError>,
{
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path: Result<Path<(String, String)>, PathRejection> = Path::from_request_parts(parts, state).await;
        let Path((one, two)) = path.map_err(|_| Refused::field("id", "in the path must be ids in UTF-8"))?;
        let wrong = |error: IdError| Refused::field("id", format!("in the path {error}"));
        Ok(Self(one.parse().map_err(wrong)?, two.parse().map_err(wrong)?))
    }
}

/// The id and the version in the path.
#[derive(Debug)]
pub struct PathVersion {
    pub id: DefinitionId,
    pub version: u64,
}

impl<S: Send + Sync> FromRequestParts<S> for PathVersion {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path: Result<Path<(String, String)>, PathRejection> = Path::from_request_parts(parts, state).await;
        let Path((id, version)) = path.map_err(|_| Refused::field("id", "in the path must be one id in UTF-8"))?;
        let id = id.parse().map_err(|error: IdError| Refused::field("id", format!("in the path {error}")))?;
        let number = version.parse().ok().filter(|version| *version > 0);
        let version =
            number.ok_or_else(|| Refused::field("version", "in the path must be a whole number from 1 on"))?;
        Ok(Self { id, version })
    }
}

/// A name in the path that has no form of its own.
pub struct PathText(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let path: Result<Path<String>, PathRejection> = Path::from_request_parts(parts, state).await;
        path.map(|Path(text)| Self(text)).map_err(|_| Refused::field("id", "in the path must be text in UTF-8"))
    }
}

/// A JSON body, whatever its content type says. `None`: there is none.
#[derive(Debug)]
pub struct JsonBody(pub Option<Value>);

impl JsonBody {
    pub fn required(self) -> Result<Value, Refused> {
        self.0.ok_or_else(|| Refused::new(Code::InvalidJson, "The body is empty; send a JSON object."))
    }
}

impl<S: Sync> FromRequest<S> for JsonBody {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let bytes = read(request.into_body()).await?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(None));
        }
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
            let what = "The body is not well-formed JSON";
            Refused::new(Code::InvalidJson, format!("{what}: {error}. Send one JSON object, whole and alone."))
        })?;
        if is_too_deep(&value) { Err(fields::too_deep("body").into()) } else { Ok(Self(Some(value))) }
    }
}

async fn read(body: Body) -> Result<Bytes, Refused> {
    // Said beforehand to be too large: not a byte of it is read.
    if body.size_hint().lower() > ACTION_BYTES_MAX as u64 {
        return Err(too_large());
    }
    axum::body::to_bytes(body, ACTION_BYTES_MAX).await.map_err(|error| {
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            if error.to_string().contains("length limit exceeded") {
                return too_large();
            }
            cause = error.source();
        }
        Refused::new(Code::InvalidJson, "The body ended early; send it again, whole.")
    })
}

fn too_large() -> Refused {
    let what = format!("The body has more than {ACTION_BYTES_MAX} bytes; send a path or URL instead.");
    Refused::new(Code::TooLarge, what)
}

/// The header that is another place for an action id.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refused> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(_) => Err(Refused::field("Idempotency-Key", "must be plain ASCII")),
    }
}
