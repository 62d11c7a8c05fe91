//! Which models a turn asks, as its persona and the profiles are defined.

use domain::chat::Prices;
use domain::converse::Summariser;
use domain::definition::check;
use schemas::definition::DefinitionKind;
use serde_json::Value;

use super::cuts::{first_piece, long};
use super::*;

/// The agent `agent` with this persona, and a model profile for each of these.
async fn define(place: &Place, persona: Value, profiles: &[Value]) {
    let agent = json!({"id": "agent", "name": "Ada", "project_ids": ["p1"], "persona_inline": persona});
    let mut definitions =
        vec![(DefinitionKind::Project, json!({"id": "p1", "name": "Site"})), (DefinitionKind::Agent, agent)];
    definitions.extend(profiles.iter().map(|profile| (DefinitionKind::ModelProfile, profile.clone())));
    let checked = definitions.iter().map(|(kind, value)| check(*kind, value).expect("sound").new);
    let new: Vec<_> = checked.collect();
    place.ports.definitions.define(&Namespace::default_ns(), &new).await.expect("written");
}

async fn resolved(place: &Place) -> persona::Resolved {
    let deps = place.deps(place.ports.conversations.clone());
    let (namespace, agent) = (Namespace::default_ns(), AgentId::parse("agent").expect("an id"));
    let resolved = persona::resolve(&deps, &namespace, &agent, &Settings::default()).await;
    resolved.unwrap_or_else(|outcome| panic!("{outcome:?}"))
}

fn prices(target: &ModelTarget) -> Prices {
    let ModelTarget::Profile(profile) = target else { panic!("{target:?}") };
    profile.prices
}

#[tokio::test(start_paused = true)]
async fn a_profile_without_prices_has_none_and_not_prices_of_nothing() {
    let place = Place::new().await;
    let profile = json!({"id": "fast", "name": "Fast", "provider": "local", "model_id": "m-9"});
    let persona = json!({"system_prompt": "You help.", "model_profile_id": "fast"});
    define(&place, persona.clone(), std::slice::from_ref(&profile)).await;
    assert_eq!(prices(&resolved(&place).await.target), Prices::default());
    let mut priced = profile;
    priced["cost_per_1k_input_tokens"] = json!(2.0);
    define(&place, persona, &[priced]).await;
    let given = prices(&resolved(&place).await.target);
    assert_eq!((given.cost_per_1k_input_tokens, given.cost_per_1k_output_tokens), (Some(2.0), Some(0.0)));
}

#[tokio::test(start_paused = true)]
async fn a_persona_may_have_another_model_for_its_summaries() {
    let place = Place::new().await;
    let profiles = [
        json!({"id": "big", "name": "B", "provider": "local", "model_id": "big-1", "model_max_tokens": 100_000}),
        json!({"id": "small", "name": "S", "provider": "local", "model_id": "small-1", "model_max_tokens": 8_000}),
    ];
    let persona = |settings: Value| json!({"system_prompt": "x", "model_profile_id": "big", "compaction": settings});
    define(&place, persona(json!({"model_profile_id": "small"})), &profiles).await;
    let found = resolved(&place).await;
    let model = |target: &ModelTarget| match target {
        ModelTarget::Profile(profile) => profile.model.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((model(&found.target), found.model_max_tokens), ("big-1".to_owned(), 100_000));
    let summariser = found.summariser.expect("it has one");
    assert_eq!((model(&summariser.target), summariser.window), ("small-1".to_owned(), 8_000));
    for compaction in [json!({}), json!({"model_profile_id": "small", "enabled": false})] {
        define(&place, persona(compaction.clone()), &profiles).await;
        assert_eq!(resolved(&place).await.summariser, None::<Summariser>, "{compaction}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_asked_of_the_model_that_the_context_names_and_fits_it() {
    let small = ModelTarget::Named("small".to_owned());
    for (summariser, window, max_tokens) in [(None, None, 1_024), (Some(small), Some(1_000), 250)] {
        let place = Place::new().await;
        let mut assembly = Assembly { summariser: summariser.clone(), ..long() };
        assembly.limits.context.as_mut().expect("it is compacted").summary_window = window;
        let body = Json::of(&assembly);
        place.say(vec![LogRecord { turn_id: Some(turn_id("t1")), body, ..record(LogKind::Assembly, "a1") }]).await;
        let deps = place.deps(place.ports.conversations.clone());
        let (namespace, talk, cut) = (Namespace::default_ns(), talk(TalkWork::Extract), Notify::new());
        let (session, checks) = (SessionId::parse("s1").expect("an id"), Checks::default());
        compact::compact(&deps, &namespace, &talk, first_piece(&session, &checks), &cut).await;
        let asked = place.models.asked();
        let call = asked.first().expect("it is asked");
        assert_eq!(call.target, summariser.unwrap_or(ModelTarget::Default));
        assert_eq!(call.request.parameters.max_tokens, Some(max_tokens), "a quarter of a small window");
    }
}
