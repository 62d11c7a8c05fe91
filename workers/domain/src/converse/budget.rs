//! Budgets of a turn, of its session and of its namespace. What is over, or would be with the next request, is
//! found out before the model is asked; then a person is asked whether it may go on, and no turn fails for it.

use schemas::conversation::{ApprovalRequest, OperationKind, OperationState, TurnError, TurnPhase, TurnUsage};
use schemas::definition::{Budgets, NamespaceBudget};
use schemas::id::{AgentId, TurnId};
use schemas::json::Json;
use schemas::session::ModelUse;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::apply::{Applying, stub};
use super::asking;
use super::decision::TurnDecision;
use super::ids;
use super::open::question;
use super::reply::Reply;
use super::settings::LEFT_MAX;
use super::state::{Approved, Lane, Open, Stage, TalkState};
use crate::spending::{NANOS, Spent};

/// How long a person has to allow more than a budget.
pub(super) const ASKS_MS: u64 = 24 * 3_600 * 1_000;
const TOOL: &str = "budget";

/// Whose budget it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Turn,
    Session,
    Namespace,
}

/// What it bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// In and out.
    Tokens,
    /// In the operator's currency.
    Cost,
    /// Calls of models.
    Moves,
    Seconds,
}

impl Measure {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Moves => "moves",
            Self::Seconds => "seconds",
        }
    }

    /// How much of it that is; of time nothing is known.
    fn of(self, spent: Spent) -> f64 {
        match self {
            Self::Tokens => spent.tokens as f64,
            Self::Cost => spent.cost(),
            Self::Moves => spent.calls as f64,
            Self::Seconds => 0.0,
        }
    }
}

/// A budget that is used up, or that the next request does not fit into.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Over {
    pub scope: Scope,
    pub what: Measure,
    pub used: f64,
    /// What the next request takes at least, where that is known.
    #[serde(default)]
    pub next: f64,
    pub limit: f64,
    /// What a yes allows besides.
    #[serde(default)]
    pub more: f64,
    /// How often that is the whole budget; of time, what a step takes anew comes on top.
    #[serde(default = "once")]
    pub times: u32,
}

impl Over {
    /// The same, where a yes also has to allow what is made again: of time exactly that, of anything else as many whole
    /// budgets.
    pub(crate) fn with_repeat(&self, repeated: Spent, took_ms: i64) -> Self {
        if self.what == Measure::Seconds {
            return Self { more: self.more + took_ms as f64 / 1_000.0, ..self.clone() };
        }
        let whole = self.more / f64::from(self.times.max(1));
        // A cast of a number that is too large ends at the bound.
        let besides = if whole > 0.0 { (self.what.of(repeated) / whole).ceil() as u32 } else { 0 };
        let times = self.times.saturating_add(besides);
        Self { times, more: whole * f64::from(times), ..self.clone() }
    }
}

fn once() -> u32 {
    1
}

/// What a request takes at least: itself, by the estimate (SPEC 4.8), without what is said to it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Next {
    pub tokens: u64,
    /// In the operator's currency.
    pub cost: f64,
}

/// A bound, and what is used of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    pub scope: Scope,
    pub what: Measure,
    pub used: f64,
    pub max: f64,
    /// How often people allowed it once more.
    pub raised: u32,
}

/// A bound on the time since something, in seconds; whoever has a clock checks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub scope: Scope,
    pub since_ms: i64,
    pub max_seconds: u64,
}

/// What whoever asks a model finds of budgets and does not know from the state.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// When the model had answered.
    pub at_ms: i64,
    /// What the namespace may use, and had used before the model was asked. Absent: it has no bound.
    pub namespace: Option<(NamespaceBudget, Spent)>,
}

/// What is checked once the request is known, before a model is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checks {
    pub spans: Vec<Span>,
    /// Of the turn and its session.
    pub known: Vec<Bound>,
    /// How often the namespace's budget was raised for this session.
    pub raised: u32,
}

impl Checks {
    /// Whether the model is not to be asked `next` now.
    pub fn over(&self, now_ms: i64, next: Next, budget: Option<(&NamespaceBudget, &Spent)>) -> Option<Over> {
        let seconds = |span: &Span| now_ms.saturating_sub(span.since_ms).max(0) as f64 / 1_000.0;
        let late = self.spans.iter().find(|span| seconds(span) >= span.max_seconds as f64);
        let late = late.map(|span| {
            let (used, max) = (seconds(span), span.max_seconds as f64);
            Over { scope: span.scope, what: Measure::Seconds, used, next: 0.0, limit: max, more: max, times: 1 }
        });
        late.or_else(|| self.known.iter().find_map(|known| known.over(next))).or_else(|| {
            let (budget, spent) = budget?;
            let max = (budget.max_tokens, budget.max_cost, budget.max_moves);
            bounded(Scope::Namespace, self.raised, bounds_of(spent, max)).find_map(|known| known.over(next))
        })
    }
}

impl Bound {
    /// Counts what is used of it besides.
    pub fn charge(&mut self, spent: Spent) {
        self.used += self.what.of(spent);
    }

    fn over(&self, next: Next) -> Option<Over> {
        let next = match self.what {
            Measure::Tokens => next.tokens as f64,
            Measure::Cost => next.cost,
            Measure::Moves | Measure::Seconds => 0.0,
        };
        let allowed = f64::from(self.raised) + 1.0;
        if self.is_lifted() || self.fits(next, allowed) {
            return None;
        }
        let times = self.missing(next, allowed);
        let (limit, more) = (self.max * allowed, self.max * f64::from(times));
        Some(Over { scope: self.scope, what: self.what, used: self.used, next, limit, more, times })
    }

    /// A yes to a bound of nothing, or to more than can be counted, lifts it: it would be asked for without end.
    fn is_lifted(&self) -> bool {
        self.raised >= u32::MAX - 1 || (self.max <= 0.0 && self.raised > 0)
    }

    fn fits(&self, next: f64, allowed: f64) -> bool {
        let limit = self.max * allowed;
        self.used < limit && self.used + next <= limit
    }

    /// How often a person has to allow the whole budget once more for the next request to be made: one yes is
    /// enough for it.
    fn missing(&self, next: f64, allowed: f64) -> u32 {
        if self.max <= 0.0 {
            return 1;
        }
        let begun = (self.used / self.max).floor() + 1.0;
        let needed = ((self.used + next) / self.max).ceil();
        // A cast of a number that is too large ends at the bound.
        let times = ((begun.max(needed) - allowed) as u32).max(1);
        // Sums of costs are rounded.
        if self.fits(next, allowed + f64::from(times)) { times } else { times.saturating_add(1) }
    }
}

type Bounds = [(Measure, f64, Option<f64>); 3];
/// On tokens, cost and calls.
type Most = (Option<u64>, Option<f64>, Option<u64>);

fn bounded(scope: Scope, raised: u32, bounds: Bounds) -> impl Iterator<Item = Bound> {
    bounds.into_iter().filter_map(move |(what, used, max)| Some(Bound { scope, what, used, max: max?, raised }))
}

fn bounds(used: &TurnUsage, moves: f64, max: Most) -> Bounds {
    let tokens = used.input_tokens.saturating_add(used.output_tokens) as f64;
    [
        (Measure::Tokens, tokens, max.0.map(|max| max as f64)),
        (Measure::Cost, used.cost, max.1),
        (Measure::Moves, moves, max.2.map(|max| max as f64)),
    ]
}

fn bounds_of(spent: &Spent, max: Most) -> Bounds {
    [
        (Measure::Tokens, spent.tokens as f64, max.0.map(|max| max as f64)),
        (Measure::Cost, spent.cost(), max.1),
        (Measure::Moves, spent.calls as f64, max.2.map(|max| max as f64)),
    ]
}

/// The bounds that the state alone tells of.
fn known(lane: &Lane, state: &TalkState) -> Vec<Bound> {
    let Some(budgets) = lane.limits.as_ref().map(|limits| &limits.budgets) else { return Vec::new() };
    let turn = bounds(&lane.turn.usage, 0.0, (budgets.max_tokens_per_turn, budgets.max_cost_per_turn, None));
    let of_session = (budgets.max_tokens_per_session, budgets.max_cost_per_session, budgets.max_moves_per_session);
    let session = bounds(&state.used, state.moves as f64, of_session);
    let turn = bounded(Scope::Turn, lane.allowance.saturating_sub(1), turn);
    turn.chain(bounded(Scope::Session, state.raised.session, session)).collect()
}

fn known_over(lane: &Lane, state: &TalkState) -> Option<Over> {
    known(lane, state).iter().find_map(|known| known.over(Next::default()))
}

/// What may still be used; absent: there is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Left {
    tokens: Option<u64>,
    cost: Option<f64>,
}

/// What a turn and its session may still use, of both the smaller rest.
pub(super) fn left(lane: &Lane, state: &TalkState) -> Left {
    let Some(budgets) = lane.limits.as_ref().map(|limits| &limits.budgets) else { return Left::default() };
    let (turn, session) = (u64::from(lane.allowance.max(1)), u64::from(state.raised.session) + 1);
    let tokens = |used: &TurnUsage, times: u64, max: Option<u64>| {
        max.map(|max| max.saturating_mul(times).saturating_sub(used.input_tokens.saturating_add(used.output_tokens)))
    };
    let cost = |used: &TurnUsage, times: u64, max: Option<f64>| max.map(|max| max * times as f64 - used.cost);
    let (by_turn, by_session) = (&lane.turn.usage, &state.used);
    let tokens = [
        tokens(by_turn, turn, budgets.max_tokens_per_turn),
        tokens(by_session, session, budgets.max_tokens_per_session),
    ];
    let cost =
        [cost(by_turn, turn, budgets.max_cost_per_turn), cost(by_session, session, budgets.max_cost_per_session)];
    Left { tokens: tokens.into_iter().flatten().min(), cost: cost.into_iter().flatten().reduce(f64::min) }
}

impl Left {
    /// As settings of a session that may use no more. Who has nothing left may begin, and then asks a person.
    pub fn bound(self, config: &mut Value) {
        if let Some(tokens) = self.tokens {
            config["tokens_left"] = tokens.clamp(1, LEFT_MAX).into();
        }
        if let Some(cost) = self.cost {
            // A cast of a number that is negative or too large ends at the bounds.
            config["cost_nanos_left"] = ((cost * NANOS).round() as u64).clamp(1, LEFT_MAX).into();
        }
    }
}

/// What the call of a lane's model is checked by.
pub(super) fn checks(lane: &Lane, state: &TalkState) -> Checks {
    let none = Budgets::default();
    let budgets = lane.limits.as_ref().map_or(&none, |limits| &limits.budgets);
    let span = |scope, since_ms, max: Option<u64>| max.map(|max_seconds| Span { scope, since_ms, max_seconds });
    let turn_ms = lane.since_ms.unwrap_or(lane.turn.created_at_ms);
    let session_ms = state.raised.session_since_ms.or(state.since_ms).unwrap_or(turn_ms);
    let spans = [
        span(Scope::Turn, turn_ms, budgets.max_seconds_per_turn),
        span(Scope::Session, session_ms, budgets.max_seconds_per_session),
    ];
    Checks { spans: spans.into_iter().flatten().collect(), known: known(lane, state), raised: state.raised.namespace }
}

/// What a call of a step is checked by, in a session without turns that has used `used`. Its time counts from
/// `since_ms`.
pub(crate) fn checks_of_steps(used: &ModelUse, each: &Budgets, since_ms: i64) -> Checks {
    let scope = Scope::Session;
    let max = (each.max_tokens_per_session, each.max_cost_per_session, each.max_moves_per_session);
    let span = each.max_seconds_per_session.map(|max_seconds| Span { scope, since_ms, max_seconds });
    Checks {
        spans: span.into_iter().collect(),
        known: bounded(scope, used.raised_session, bounds_of(&Spent::by_steps(used), max)).collect(),
        raised: used.raised_namespace,
    }
}

/// What the tools that a reply calls may ask of models: each of them is held against all budgets, with those before
/// it. What they say is not known before, so of each the call counts, and what it is given.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Purse {
    checks: Checks,
    found: Found,
}

impl Purse {
    /// After a reply that the state does not count as a move yet.
    pub fn of(lane: &Lane, state: &TalkState, reply: &Reply) -> Self {
        let mut purse = Self { checks: checks(lane, state), found: reply.found.clone() };
        // What was found is from before the reply; the state has what its call has used.
        if let (Some((_, spent)), Some(record)) = (&mut purse.found.namespace, &reply.record) {
            spent.add(Spent::of_call(record));
        }
        let moves = purse.checks.known.iter_mut().filter(|bound| bound.what == Measure::Moves);
        moves.for_each(|bound| bound.used += 1.0);
        // Tools of all turns that have not told yet what they ask.
        let open = state.lanes.iter().flat_map(|lane| &lane.open);
        let under_way = open.filter(|open| open.asks_model && open.kind == OperationKind::Task);
        purse.add(Spent { calls: under_way.count() as u64, ..Spent::default() });
        purse
    }

    /// Whether one more may be called, which gives a model so many tokens. If so, it counts.
    pub fn pays(&mut self, tokens: u64) -> bool {
        let namespace = self.found.namespace.as_ref().map(|(budget, spent)| (budget, spent));
        let is_over = self.checks.over(self.found.at_ms, Next { tokens, cost: 0.0 }, namespace).is_some();
        if !is_over {
            self.add(Spent { calls: 1, tokens, cost_nanos: 0 });
        }
        !is_over
    }

    fn add(&mut self, asked: Spent) {
        self.checks.known.iter_mut().for_each(|bound| bound.charge(asked));
        if let Some((_, spent)) = &mut self.found.namespace {
            spent.add(asked);
        }
    }
}

/// Replies that models may be being asked for in this state: of which turns, and their numbers.
pub(super) fn asked(state: &TalkState) -> Vec<(TurnId, u32)> {
    thinking(state).map(|lane| (lane.turn.turn_id.clone(), lane.next_reply())).collect()
}

/// Turns that would go on over a budget ask first. A model that may have been `asked` before this step is heard to
/// the end, whoever has used up the budget meanwhile: its reply is paid for, and to ask it again would be paid for
/// once more. If the call has not begun, it finds out for itself (see [`Checks`]).
pub(super) fn guard(step: &mut Applying, asked: &[(TurnId, u32)]) {
    let is_asked =
        |lane: &Lane| asked.iter().any(|(turn, number)| *turn == lane.turn.turn_id && *number == lane.next_reply());
    let new = thinking(&step.state).filter(|lane| !is_asked(lane));
    let over = new.filter_map(|lane| Some((lane.turn.turn_id.clone(), known_over(lane, &step.state)?)));
    for (turn_id, over) in over.collect::<Vec<_>>() {
        ask(step, &turn_id, &over);
    }
}

fn thinking(state: &TalkState) -> impl Iterator<Item = &Lane> {
    state.lanes.iter().filter(|lane| lane.stage == Stage::Think)
}

/// Asks a person. Turns of one session that meet the same bound share one question.
pub(super) fn ask(step: &mut Applying, turn_id: &TurnId, over: &Over) {
    let is_shared = |open: &&Open| {
        over.scope != Scope::Turn
            && matches!(open.approved, Some(Approved::Budget { scope, .. }) if scope == over.scope)
    };
    let asked = step.state.lanes.iter().flat_map(|lane| &lane.open).find(is_shared).cloned();
    if let Some(open) = asked {
        if let Some(lane) = step.state.lane_mut(turn_id) {
            lane.open.push(open);
        }
    } else {
        let Some(agent) = step.state.lane(turn_id).map(|lane| lane.turn.agent_id.clone()) else { return };
        step.state.asked += 1;
        let decision = new_question(step.state.asked, turn_id, over, &agent);
        step.apply(vec![decision]);
    }
    let phase = TurnPhase::WaitingApproval;
    step.apply(vec![TurnDecision::MarkWaiting { turn_id: turn_id.clone(), phase }]);
}

fn new_question(number: u64, turn_id: &TurnId, over: &Over, agent: &AgentId) -> TurnDecision {
    let id = ids::operation_id(turn_id.as_str(), &format!("budget.{number}"));
    let mut asked = stub(turn_id, &id, OperationKind::Approval, OperationState::Pending);
    asked.tool = TOOL.to_owned();
    asked.request = Json::of(&asking::request(TOOL, over, agent));
    let arguments_hash = crate::tool::arguments_hash(TOOL, &json!([turn_id, number, over]));
    let operation = question(&asked, ApprovalRequest { arguments_hash, expires_ms: ASKS_MS, default_approve: false });
    let open = Open {
        operation_id: operation.operation_id.clone(),
        call_id: TOOL.to_owned(),
        tool: TOOL.to_owned(),
        kind: OperationKind::Approval,
        is_async: false,
        child: None,
        approved: Some(Approved::Budget { scope: over.scope, times: over.times }),
        number: None,
        asks_model: false,
    };
    TurnDecision::AskApproval { turn_id: turn_id.clone(), operation: Box::new(operation), open: Box::new(open) }
}

/// A person has answered at `at_ms`: all turns that wait for it go on, or end.
pub(super) fn answered(step: &mut Applying, asked: &Open, (scope, times): (Scope, u32), is_yes: bool, at_ms: i64) {
    let is_this = |open: &Open| open.operation_id == asked.operation_id;
    let waiting = step.state.lanes.iter_mut().filter(|lane| lane.open.iter().any(is_this));
    let mut turns = Vec::new();
    for lane in waiting {
        lane.open.retain(|open| !is_this(open));
        if is_yes && scope == Scope::Turn {
            lane.allowance = lane.allowance.saturating_add(times);
            lane.since_ms = Some(at_ms);
        }
        turns.push(lane.turn.turn_id.clone());
    }
    // Turns may share a question; it is then about none of them alone.
    if let [turn] = turns.as_slice() {
        step.emits.turn = Some(turn.clone());
    }
    let raised = &mut step.state.raised;
    match scope {
        Scope::Session if is_yes => {
            raised.session = raised.session.saturating_add(times);
            raised.session_since_ms = Some(at_ms);
        }
        Scope::Namespace if is_yes => raised.namespace = raised.namespace.saturating_add(times),
        _ => {}
    }
    let decided = turns.into_iter().map(|turn_id| match is_yes {
        true => TurnDecision::ResumeFromTool { turn_id },
        false => TurnDecision::FailTurn { turn_id, error: exhausted(scope), cancelled: false },
    });
    step.apply(decided.collect());
}

fn exhausted(scope: Scope) -> TurnError {
    let whose = match scope {
        Scope::Turn => "the turn",
        Scope::Session => "the session",
        Scope::Namespace => "the namespace",
    };
    TurnError {
        code: "budget_exhausted".to_owned(),
        message: format!("{whose} has used its budget and was not allowed more"),
        provider: None,
        raw: None,
    }
}
