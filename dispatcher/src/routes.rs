//! The table of all routes. The router, the guards and `/openapi.json` are made from it, so they
//! cannot differ.

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::MethodRouter;
use domain::ports::Scope;
use schemas::problem::Code;

use crate::answer;
use crate::assets;
use crate::auth::{self, Guard};
use crate::gateway::Gateway;
use crate::{api, openapi, shell};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Patch,
    Delete,
}

impl Verb {
    /// As in `/openapi.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// A query or header parameter, for the description.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    pub name: &'static str,
    pub about: &'static str,
    pub header: bool,
}

/// One route: what it is, who may use it, and what it does.
pub struct Route {
    pub verb: Verb,
    pub path: &'static str,
    /// `None`: no token is needed.
    pub scope: Option<Scope>,
    pub stream: bool,
    /// Has no time limit: it says how far it is.
    pub long: bool,
    pub summary: &'static str,
    pub params: Vec<Param>,
    /// Schema of the body.
    pub body: Option<&'static str>,
    /// Status, media type and, for JSON, schema of a good answer.
    pub answer: (u16, &'static str, Option<&'static str>),
    /// Another status that a good answer may have.
    pub also: Option<u16>,
    pub refusals: Vec<Code>,
    handler: MethodRouter<Gateway>,
}

impl Route {
    pub fn get(path: &'static str, handler: MethodRouter<Gateway>) -> Self {
        Self::new(Verb::Get, path, handler)
    }

    pub fn post(path: &'static str, handler: MethodRouter<Gateway>) -> Self {
        Self::new(Verb::Post, path, handler)
    }

    pub fn patch(path: &'static str, handler: MethodRouter<Gateway>) -> Self {
        Self::new(Verb::Patch, path, handler)
    }

    pub fn delete(path: &'static str, handler: MethodRouter<Gateway>) -> Self {
        Self::new(Verb::Delete, path, handler)
    }

    fn new(verb: Verb, path: &'static str, handler: MethodRouter<Gateway>) -> Self {
        Self {
            verb,
            path,
            scope: Some(Scope::Read),
            stream: false,
            long: false,
            summary: "",
            params: Vec::new(),
            body: None,
            answer: (200, "application/json", None),
            also: None,
            refusals: Vec::new(),
            handler,
        }
    }

    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// No token is needed.
    pub fn open(mut self) -> Self {
        self.scope = None;
        self
    }

    /// Has no time limit, and takes its token from the query too.
    pub fn stream(mut self) -> Self {
        self.stream = true;
        self
    }

    /// Has no time limit, because its answer says how far it is.
    pub fn long(mut self) -> Self {
        self.long = true;
        self
    }

    pub fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    pub fn query(mut self, params: &[(&'static str, &'static str)]) -> Self {
        self.params.extend(params.iter().map(|&(name, about)| Param { name, about, header: false }));
        self
    }

    pub fn header(mut self, name: &'static str, about: &'static str) -> Self {
        self.params.push(Param { name, about, header: true });
        self
    }

    pub fn body(mut self, schema: &'static str) -> Self {
        self.body = Some(schema);
        self
    }

    pub fn answers(mut self, status: u16, schema: &'static str) -> Self {
        self.answer = (status, "application/json", Some(schema));
        self
    }

    /// Lines of JSON, each of this schema.
    pub fn answers_lines(mut self, status: u16, schema: &'static str) -> Self {
        self.answer = (status, "application/x-ndjson", Some(schema));
        self
    }

    /// The same answer under another status.
    pub fn also_answers(mut self, status: u16) -> Self {
        self.also = Some(status);
        self
    }

    pub fn answers_text(mut self, status: u16, media_type: &'static str) -> Self {
        self.answer = (status, media_type, None);
        self
    }

    pub fn refuses(mut self, codes: &[Code]) -> Self {
        self.refusals.extend_from_slice(codes);
        self
    }
}

/// What a process without a gateway answers: probes and scrapes.
pub fn probes() -> Vec<Route> {
    api::health::routes()
}

/// All routes but the console's files.
pub fn table() -> Vec<Route> {
    [
        api::actions::routes(),
        api::control::routes(),
        api::sessions::routes(),
        api::agents::routes(),
        api::memories::routes(),
        api::conversations::routes(),
        api::turns::routes(),
        api::operations::routes(),
        api::spending::routes(),
        api::definitions::routes(),
        api::steps::routes(),
        api::events::routes(),
        api::socket::routes(),
        api::fleet::routes(),
        api::dead::routes(),
        api::pools::routes(),
        api::health::routes(),
        openapi::routes(),
        assets::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub fn router(gateway: Gateway) -> Router {
    of(table(), gateway.clone()).fallback(assets::console).layer(from_fn(shell::shell)).with_state(gateway)
}

/// The router of a process without a gateway.
pub fn probe_router(gateway: Gateway) -> Router {
    of(probes(), gateway.clone()).layer(from_fn(shell::shell)).with_state(gateway)
}

fn of(routes: Vec<Route>, gateway: Gateway) -> Router<Gateway> {
    let mut router = Router::new();
    for route in routes {
        let mut handler = route.handler;
        if let Some(scope) = route.scope {
            let guard = Guard { gateway: gateway.clone(), scope, stream: route.stream };
            // route_layer: a wrong method is answered as such, whoever asks.
            handler = handler.route_layer(from_fn_with_state(guard, auth::guard));
        }
        if !(route.stream || route.long) {
            handler = handler.layer(from_fn(shell::time_limit));
        }
        router = router.route(route.path, handler);
    }
    router.method_not_allowed_fallback(answer::method_not_allowed)
}
