//! Models that do not take the request for a summary as it is first made.

use std::collections::VecDeque;

use domain::chat::{
    ChatFailure, ChatOutcome, ChatReply, ErrorCategory, Finish, Parameters, ProviderCallRecord, RequestOutcome, Usage,
};
use domain::converse::{Bound, Compacted, Measure, Scope};
use domain::ports::DeltaSink;

use super::cuts::{first_piece, long};
use super::*;

/// Of every answer.
const INPUT_TOKENS: u64 = 10;
const COST: f64 = 1.0;

type Answer = Result<ChatReply, (u16, ChatFailure)>;

/// A model that gives its answers in turn and keeps what it was asked for. A failure comes with its status.
struct InTurn {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Parameters>>,
    /// Notified with the first answer if `is_cut`.
    cut: Notify,
    is_cut: bool,
}

#[async_trait]
impl Models for InTurn {
    async fn chat(&self, call: &ChatCall, _: Option<&dyn DeltaSink>) -> ChatOutcome {
        self.asked.lock().expect("unpoisoned").push(call.request.parameters.clone());
        let answer = self.answers.lock().expect("unpoisoned").pop_front().expect("it is asked no more often");
        if self.is_cut {
            self.cut.notify_one();
        }
        let (ok, status) = (answer.is_ok(), answer.as_ref().err().map_or(200, |(status, _)| *status));
        let mut record = ProviderCallRecord::open(&call.id, &call.context, "openai", "m", false, 0);
        record.usage = answer.as_ref().ok().and_then(|reply| reply.usage.clone());
        record.cost = record.usage.as_ref().map(|_| COST);
        record.outcome = Some(RequestOutcome {
            ok,
            status: Some(status),
            error_category: answer.as_ref().err().map(|(_, failure)| failure.category),
            attempts: 1,
            started_at_ms: 0,
            finished_at_ms: 0,
        });
        ChatOutcome { record, result: answer.map_err(|(_, failure)| failure) }
    }

    fn provider(&self) -> String {
        "openai".to_owned()
    }

    fn cost_of_input(&self, _: &ModelTarget, _: u64) -> f64 {
        0.0
    }
}

fn says(text: &str, finish: Finish) -> Answer {
    Ok(ChatReply {
        parts: vec![Part::text(text)],
        finish,
        raw_finish: None,
        usage: Some(Usage { input_tokens: INPUT_TOKENS, total_tokens: INPUT_TOKENS, ..Usage::default() }),
        provider: "openai".to_owned(),
        model: "m".to_owned(),
        message_id: None,
        request_id: None,
        raw: json!(null),
    })
}

fn fails(status: u16, category: ErrorCategory, message: &str) -> Answer {
    let failure = ChatFailure {
        category,
        code: Code::ProviderFailed,
        message: message.to_owned(),
        provider: "openai".to_owned(),
        raw: None,
        retriable: false,
        may_have_happened: true,
    };
    Err((status, failure))
}

/// What a piece comes to, and what the model was asked for. All its answers are asked for.
async fn summarised(answers: Vec<Answer>, is_cut: bool, most: u32) -> (Compacted, Vec<Parameters>) {
    summarised_within(Checks::default(), answers, is_cut, most).await
}

async fn summarised_within(
    checks: Checks,
    answers: Vec<Answer>,
    is_cut: bool,
    most: u32,
) -> (Compacted, Vec<Parameters>) {
    let place = Place::new().await;
    let mut context = long();
    context.limits.context.as_mut().expect("limits").compaction.max_summary_tokens = most;
    let body = Json::of(&context);
    place.say(vec![LogRecord { turn_id: Some(turn_id("t1")), body, ..record(LogKind::Assembly, "a1") }]).await;
    let (answers, asked, cut) = (Mutex::new(answers.into()), Mutex::default(), Notify::new());
    let models = Arc::new(InTurn { answers, asked, cut, is_cut });
    let deps = TalkDeps { models: models.clone(), ..place.deps(place.ports.conversations.clone()) };
    let session = SessionId::parse("s1").expect("an id");
    let (namespace, talk, asked) = (Namespace::default_ns(), talk(TalkWork::Extract), first_piece(&session, &checks));
    let outcome = compact::compact(&deps, &namespace, &talk, asked, &models.cut).await;
    let left = models.answers.lock().expect("unpoisoned").len();
    assert!(left == 0 || is_cut, "{left} more answers");
    let asked = models.asked.lock().expect("unpoisoned").clone();
    (outcome.compacted().expect("an answer").clone(), asked)
}

fn input_tokens(compacted: &Compacted) -> Option<u64> {
    Some(compacted.record.as_ref()?.usage.as_ref()?.input_tokens)
}

const NO_TEMPERATURE: &str = "openai: the request was refused (status 400): Unsupported value: 'temperature' does not \
                              support 0.0 with this model. Only the default (1) value is supported.";

#[tokio::test(start_paused = true)]
async fn a_model_that_takes_no_temperature_is_asked_without_one() {
    for message in [NO_TEMPERATURE, "openai: the request was refused (status 400): `top_p` cannot be set"] {
        let answers = vec![fails(400, ErrorCategory::Validation, message), says("They counted.", Finish::Stop)];
        let (compacted, asked) = summarised(answers, false, 1_024).await;
        assert!(compacted.made.is_some() && compacted.failure.is_none(), "{compacted:?}");
        let temperatures: Vec<Option<f64>> = asked.iter().map(|parameters| parameters.temperature).collect();
        assert_eq!(temperatures, [Some(0.0), None]);
        assert_eq!(asked[0].max_tokens, asked[1].max_tokens);
        let record = compacted.record.as_ref().expect("a record");
        assert!(record.outcome.as_ref().is_some_and(|outcome| outcome.ok), "{record:?}");
        assert_eq!((input_tokens(&compacted), &record.response_metadata["added_calls"]), (Some(10), &json!(1)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_for_another_reason_is_made_once() {
    for (status, category, message) in [
        (400, ErrorCategory::Validation, "openai: the request was refused (status 400): too long"),
        (429, ErrorCategory::RateLimit, "openai: too many requests of this temperature"),
        (404, ErrorCategory::Validation, "openai: there is no model temperature-1"),
    ] {
        let (compacted, asked) = summarised(vec![fails(status, category, message)], false, 1_024).await;
        assert_eq!((asked.len(), compacted.failure.as_deref()), (1, Some(message)));
        assert!(compacted.made.is_none() && compacted.record.is_some(), "{compacted:?}");
    }
    let twice = || fails(400, ErrorCategory::Validation, NO_TEMPERATURE);
    let (compacted, asked) = summarised(vec![twice(), twice()], false, 1_024).await;
    assert_eq!((asked.len(), compacted.failure.as_deref()), (2, Some(NO_TEMPERATURE)));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_only_thought_has_more_room_once() {
    // A quarter of the window is 25,000 tokens.
    for (most, wider) in [(1_024, 4_096), (10_000, 25_000)] {
        let answers = vec![says(" ", Finish::Length), says("They counted.", Finish::Stop)];
        let (compacted, asked) = summarised(answers, false, most).await;
        assert!(compacted.made.is_some() && compacted.failure.is_none(), "{compacted:?}");
        let bounds: Vec<Option<u32>> = asked.iter().map(|parameters| parameters.max_tokens).collect();
        assert_eq!(bounds, [Some(most), Some(wider)]);
        assert_eq!(input_tokens(&compacted), Some(2 * INPUT_TOKENS), "both are paid for");
    }
    let blank = || says("", Finish::Length);
    let (compacted, _) = summarised(vec![blank(), blank()], false, 1_024).await;
    assert!(compacted.made.is_none() && compacted.failure.is_some(), "{compacted:?}");
    assert_eq!(input_tokens(&compacted), Some(2 * INPUT_TOKENS));
    let (compacted, _) = summarised(vec![blank()], false, 30_000).await;
    assert!(compacted.failure.is_some(), "there is no more room: {compacted:?}");
    let (compacted, _) = summarised(vec![says("They counted", Finish::Length)], false, 1_024).await;
    assert!(compacted.made.is_some(), "a text that is cut off is a text: {compacted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_model_is_not_asked_again_for_what_its_first_answer_has_used_up() {
    let within = |max: f64| {
        let known = vec![Bound { scope: Scope::Turn, what: Measure::Cost, used: 0.0, max, raised: 0 }];
        Checks { known, ..Checks::default() }
    };
    let thought = || says("", Finish::Length);
    let (compacted, asked) = summarised_within(within(COST / 2.0), vec![thought()], false, 1_024).await;
    assert_eq!((asked.len(), compacted.over.as_ref().map(|over| over.used)), (1, Some(COST)));
    assert!(compacted.made.is_some() && compacted.failure.is_none(), "made without a model: {compacted:?}");
    assert_eq!(input_tokens(&compacted), Some(INPUT_TOKENS), "what it has used is told");
    let answers = vec![thought(), says("They counted.", Finish::Stop)];
    let (compacted, asked) = summarised_within(within(COST * 1.5), answers, false, 1_024).await;
    assert_eq!((asked.len(), &compacted.over), (2, &None));
    assert!(compacted.made.is_some(), "{compacted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_cut_before_it_is_asked_for_again_counts_what_was_used() {
    let answers = vec![says("", Finish::Length), says("They counted.", Finish::Stop)];
    let (compacted, asked) = summarised(answers, true, 1_024).await;
    assert!(compacted.cut && compacted.made.is_none() && compacted.failure.is_none(), "{compacted:?}");
    assert_eq!((asked.len(), input_tokens(&compacted)), (1, Some(INPUT_TOKENS)));
}

#[tokio::test(start_paused = true)]
async fn both_are_mended_for_one_summary() {
    let answers = vec![
        fails(400, ErrorCategory::Validation, NO_TEMPERATURE),
        says("", Finish::Length),
        says("They counted.", Finish::Stop),
    ];
    let (compacted, asked) = summarised(answers, false, 1_024).await;
    assert!(compacted.made.is_some(), "{compacted:?}");
    let last = &asked[2];
    assert_eq!((last.temperature, last.max_tokens), (None, Some(4_096)));
    assert_eq!(input_tokens(&compacted), Some(2 * INPUT_TOKENS));
}
