//! Sampling, and how the stages of an action hang together.

use std::collections::HashMap;

use super::*;

fn ratio_of(sampler: &str, argument: &str) -> Result<f64, String> {
    let set = HashMap::from([("OTEL_TRACES_SAMPLER", sampler), ("OTEL_TRACES_SAMPLER_ARG", argument)]);
    ratio(&|name| set.get(name).map(|value| (*value).to_owned()))
}

#[test]
fn samplers_that_are_not_known_are_refused_with_those_that_are() {
    assert_eq!(ratio_of("", ""), Ok(1.0));
    assert_eq!(ratio_of("parentbased_traceidratio", "0.25"), Ok(0.25));
    assert_eq!(ratio_of("always_off", ""), Ok(0.0));
    assert!(ratio_of("jaeger_remote", "").is_err_and(|why| why.contains("always_on")));
    assert!(ratio_of("traceidratio", "2").is_err_and(|why| why.contains("0 to 1")));
}

#[test]
fn about_the_given_part_of_all_traces_is_kept() {
    let kept = (0..10_000).filter(|n| {
        let action = format!("a{n}").parse().expect("an id");
        is_kept(domain::trace::trace_ids(&"default".parse().expect("a namespace"), &action).trace, 0.25)
    });
    let kept = kept.count();
    assert!((2_300..2_700).contains(&kept), "{kept}");
    assert!(is_kept(u128::MAX, 1.0) && !is_kept(0, 0.0));
}

#[test]
fn every_other_stage_is_a_child_of_the_acceptance_in_the_same_trace() {
    let (namespace, action) = ("default".parse().expect("a namespace"), "a1".parse().expect("an id"));
    let ids = domain::trace::trace_ids(&namespace, &action);
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let of = |stage| span::span(stage, ids, (at, at), &namespace, &action, Vec::new());
    let root = of(Stage::Accept);
    for stage in [Stage::Publish, Stage::Deliver, Stage::Apply] {
        let child = of(stage);
        assert_eq!(child.span_context.trace_id(), root.span_context.trace_id());
        assert_eq!(child.parent_span_id, root.span_context.span_id());
        assert_ne!(child.span_context.span_id(), root.span_context.span_id());
    }
}
