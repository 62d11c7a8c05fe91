//! What a person is shown who is asked whether turns may go on over a budget.

use schemas::id::AgentId;
use serde_json::{Value, json};

use super::budget::{Measure, Over, Scope};
use crate::spending::NANOS;

/// The request of the question: in words, and as what it is about.
pub(super) fn request(tool: &str, over: &Over, agent: &AgentId) -> Value {
    let (bound, used, limit) = (bound(over), number(over.used), number(over.limit));
    let (yes, no) = (yes(over), no(over.scope));
    let question = format!("{} ({bound}). Yes: {yes}. No: {no}.", met(over));
    let mut asked = json!({
        "target_type": tool, "scope": over.scope, "what": over.what, "used": used, "limit": limit,
        "question": question,
        "input": {"bound": bound, "of": over.scope, "used": used, "limit": limit, "yes": yes, "no": no},
        "context": {"agent_id": agent},
    });
    if over.next > 0.0 {
        asked["input"]["next"] = number(over.next);
    }
    asked
}

/// The bound as whoever sets it calls it.
fn bound(over: &Over) -> String {
    match over.scope {
        Scope::Turn => format!("max_{}_per_turn", over.what.as_str()),
        Scope::Session => format!("max_{}_per_session", over.what.as_str()),
        Scope::Namespace => format!("max_{} of the namespace", over.what.as_str()),
    }
}

pub(super) fn met(over: &Over) -> String {
    let whose = match over.scope {
        Scope::Turn => "This turn",
        Scope::Session => "This session",
        Scope::Namespace => "The namespace",
    };
    let (used, limit) = (number(over.used), number(over.limit));
    let met = match over.what {
        Measure::Seconds => format!("{whose} has taken {used} of {limit} seconds"),
        Measure::Cost => format!("{whose} has cost {used} of {limit}"),
        what => format!("{whose} has used {used} of {limit} {}", what.as_str()),
    };
    match (over.what, number(over.next)) {
        _ if over.next <= 0.0 => met,
        (Measure::Cost, next) => format!("{met}, and the next request alone costs about {next}"),
        (what, next) => format!("{met}, and the next request alone has about {next} {}", what.as_str()),
    }
}

/// Why a session without turns is paused, and what a resume of it leads to. It is a person's yes.
pub(crate) fn held(over: &Over) -> String {
    let leads_to = if is_of_nothing(over) {
        "it has this bound no longer".to_owned()
    } else {
        format!("it may use {} besides", more(over))
    };
    format!("{} ({}); once it is resumed, {leads_to}", met(over), bound(over))
}

fn is_of_nothing(over: &Over) -> bool {
    over.limit <= 0.0 && over.what != Measure::Seconds
}

fn more(over: &Over) -> String {
    match (over.what, number(over.more)) {
        (Measure::Seconds, more) => format!("{more} seconds from the answer on"),
        (Measure::Cost, more) => format!("a cost of {more}"),
        (what, more) => format!("{more} {}", what.as_str()),
    }
}

/// What it leads to: each allows the whole budget once more, or as often as the next request needs.
fn yes(over: &Over) -> String {
    if is_of_nothing(over) {
        return lifted(over.scope).to_owned();
    }
    let more = more(over);
    let again = if over.times > 1 { format!("{} times more", over.times) } else { "once more".to_owned() };
    match over.scope {
        Scope::Turn => format!("the turn goes on, and may use its whole budget {again} (here: {more})"),
        Scope::Session => format!(
            "the turns that wait for this answer go on, and the session may use its whole budget {again} (here: \
             {more})"
        ),
        Scope::Namespace => format!(
            "the turns that wait for this answer go on, and this session may use as much as the namespace's budget \
             {again} (here: {more}); other sessions ask for themselves"
        ),
    }
}

/// A bound of nothing cannot be allowed once more.
fn lifted(scope: Scope) -> &'static str {
    match scope {
        Scope::Turn => "the turn goes on without this bound",
        Scope::Session => "the turns that wait for this answer go on, and the session has this bound no longer",
        Scope::Namespace => {
            "the turns that wait for this answer go on, and this session has this bound no longer; other sessions ask \
             for themselves"
        }
    }
}

fn no(scope: Scope) -> &'static str {
    match scope {
        Scope::Turn => "the turn ends with budget_exhausted",
        Scope::Session | Scope::Namespace => "the turns that wait for this answer end with budget_exhausted",
    }
}

/// A sum as people write it: no fraction where there is none, and none of the noise of adding up.
fn number(sum: f64) -> Value {
    let sum = (sum * NANOS).round() / NANOS;
    if sum.fract() == 0.0 && sum.abs() < 1e15 { json!(sum as i64) } else { json!(sum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(scope: Scope, what: Measure, (used, limit, more): (f64, f64, f64)) -> Value {
        over_by(Over { scope, what, used, next: 0.0, limit, more, times: 1 })
    }

    fn over_by(over: Over) -> Value {
        request("budget", &over, &AgentId::parse("ada").unwrap())
    }

    #[test]
    fn a_person_reads_that_the_next_request_does_not_fit() {
        let over = |scope, what, (used, next, limit, more), times| {
            let asked = over_by(Over { scope, what, used, next, limit, more, times });
            (asked["question"].as_str().unwrap().to_owned(), asked["input"]["next"].clone())
        };
        let (words, next) = over(Scope::Turn, Measure::Tokens, (380.0, 830.0, 500.0, 1_000.0), 2);
        assert!(words.starts_with(
            "This turn has used 380 of 500 tokens, and the next request alone has about 830 tokens \
             (max_tokens_per_turn). Yes: the turn goes on, and may use its whole budget 2 times more (here: 1000 \
             tokens)."
        ));
        assert_eq!(next, 830);
        let (words, _) = over(Scope::Session, Measure::Cost, (0.5, 0.25, 0.6, 0.6), 1);
        assert!(words.contains("has cost 0.5 of 0.6, and the next request alone costs about 0.25 (max"), "{words}");
        assert!(words.contains("its whole budget once more (here: a cost of 0.6)"), "{words}");
    }

    #[test]
    fn a_person_reads_which_bound_was_met_and_what_a_yes_means() {
        let asked = asked(Scope::Session, Measure::Tokens, (150.0, 100.0, 50.0));
        assert_eq!(
            asked["question"],
            "This session has used 150 of 100 tokens (max_tokens_per_session). Yes: the turns that wait for this \
             answer go on, and the session may use its whole budget once more (here: 50 tokens). No: the turns that \
             wait for this answer end with budget_exhausted."
        );
        let input = &asked["input"];
        assert_eq!((&input["bound"], &input["of"]), (&json!("max_tokens_per_session"), &json!("session")));
        assert_eq!((&input["used"], &input["limit"]), (&json!(150), &json!(100)));
        assert!(input["yes"].is_string() && input["no"].is_string());
        assert_eq!(asked["context"]["agent_id"], "ada");
    }

    #[test]
    fn each_kind_of_bound_has_its_words() {
        let words = |scope, what, sums| asked(scope, what, sums)["question"].as_str().unwrap().to_owned();
        let time = words(Scope::Turn, Measure::Seconds, (6.5, 5.0, 5.0));
        assert!(time.starts_with("This turn has taken 6.5 of 5 seconds (max_seconds_per_turn)."), "{time}");
        assert!(time.contains("(here: 5 seconds from the answer on)"), "{time}");
        let cost = words(Scope::Namespace, Measure::Cost, (0.1 + 0.2, 0.3, 0.15));
        assert!(cost.starts_with("The namespace has cost 0.3 of 0.3 (max_cost of the namespace)."), "{cost}");
        assert!(cost.contains("(here: a cost of 0.15)") && cost.contains("ask for themselves"), "{cost}");
        let nothing = words(Scope::Turn, Measure::Cost, (0.0, 0.0, 0.0));
        assert!(nothing.contains("cost 0 of 0 (max_cost_per_turn). Yes: the turn goes on without this"), "{nothing}");
    }
}
