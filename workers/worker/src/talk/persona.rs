//! Who an agent is: its persona, its model and its tools, as they are defined now.

use domain::chat::{ModelTarget, Parameters};
use domain::converse::{Settings, Summariser};
use domain::effect::Outcome;
use domain::ports::{DefinitionKey, DefinitionRow};
use domain::tool::{self, ResolvedTool, Target};
use futures::future::try_join_all;
use schemas::definition::{self, ActionDef, Agent, DefinitionKind, Persona, PersonaBody, TargetType, Task, Tool};
use schemas::id::{AgentId, DefinitionId, Namespace};
use schemas::problem::Code;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{TalkDeps, failed, stored};

/// An agent with everything that was resolved for it.
#[derive(Clone)]
pub(super) struct Resolved {
    pub name: String,
    pub project_ids: Vec<DefinitionId>,
    pub persona: PersonaBody,
    pub target: ModelTarget,
    pub parameters: Parameters,
    pub model_max_tokens: u64,
    /// The model that makes summaries, if it is another one.
    pub summariser: Option<Summariser>,
    pub tools: Vec<ResolvedTool>,
}

/// A model whose window is not known.
const WINDOW_TOKENS: u64 = 200_000;
/// Tools that are looked up side by side: turns share the connections of the database.
const READS_AT_ONCE: usize = 4;

pub(super) async fn resolve(
    deps: &TalkDeps,
    namespace: &Namespace,
    agent: &AgentId,
    settings: &Settings,
) -> Result<Resolved, Outcome> {
    let find = Find { deps, namespace };
    let (name, project_ids, mut persona, is_defined) = match find.agent(agent).await? {
        Some(defined) => {
            let persona = find.persona(&defined).await?;
            (defined.name, defined.project_ids, persona, true)
        }
        None => (agent.to_string(), Vec::new(), nobody(), false),
    };
    settings.apply_to(&mut persona);
    if let Some(budget) = deps.budgets.get(namespace) {
        let budgets = persona.constraints.budgets.get_or_insert_default();
        *budgets = budgets.within(&budget.each);
    }
    let wanted = settings.model_profile.clone().or_else(|| is_defined.then(|| persona.model_profile_id.to_string()));
    let more = settings.tool_ids.iter().flatten().filter_map(|id| DefinitionId::parse(id).ok());
    let ids: Vec<DefinitionId> = persona.tool_ids.iter().cloned().chain(more).collect();
    // Side by side: each is some reads one after the other, and the turn waits for all of them.
    let ((target, parameters, model_max_tokens), summariser, mut tools) =
        tokio::try_join!(find.model(wanted.as_deref()), find.summariser(&persona), find.tools(&ids))?;
    // What is built in gives way to a tool of the same name.
    let named = |name: &str| tools.iter().any(|tool: &ResolvedTool| tool.tool.name == name);
    let built_in: Vec<ResolvedTool> = tool::builtins().into_iter().filter(|tool| !named(&tool.tool.name)).collect();
    tools.extend(built_in);
    Ok(Resolved { name, project_ids, persona, target, parameters, model_max_tokens, summariser, tools })
}

/// The persona of an agent; `None` if the agent is not defined.
pub(super) async fn of(
    deps: &TalkDeps,
    namespace: &Namespace,
    agent: &AgentId,
) -> Result<Option<PersonaBody>, Outcome> {
    let find = Find { deps, namespace };
    match find.agent(agent).await? {
        Some(defined) => Ok(Some(find.persona(&defined).await?)),
        None => Ok(None),
    }
}

/// The model of a profile that is defined, or else of one of the configuration; without a name, the fleet's own.
pub(super) async fn target(
    deps: &TalkDeps,
    namespace: &Namespace,
    profile: Option<&str>,
) -> Result<ModelTarget, Outcome> {
    Find { deps, namespace }.model(profile).await.map(|(target, _, _)| target)
}

/// For sessions whose agent is not defined.
fn nobody() -> PersonaBody {
    let body = json!({
        "system_prompt": "You are a helpful assistant. Answer briefly, and say so when you do not know.",
        "model_profile_id": "default",
    });
    serde_json::from_value(body).expect("a persona with its needed fields")
}

struct Find<'d> {
    deps: &'d TalkDeps,
    namespace: &'d Namespace,
}

impl Find<'_> {
    async fn agent(&self, agent: &AgentId) -> Result<Option<Agent>, Outcome> {
        let Ok(id) = DefinitionId::parse(agent.as_str()) else { return Ok(None) };
        Ok(self.newest::<Agent>(DefinitionKind::Agent, &id).await?.map(|(agent, _)| agent))
    }

    async fn persona(&self, agent: &Agent) -> Result<PersonaBody, Outcome> {
        if let Some(inline) = &agent.persona_inline {
            return Ok(inline.body.clone());
        }
        let Some(reference) = &agent.persona_ref else {
            return Err(failed(Code::DefinitionInvalid, format!("agent {} has no persona", agent.id)));
        };
        let id = &reference.persona_id;
        let found = match reference.version {
            Some(version) => self.at::<Persona>(DefinitionKind::Persona, id, version).await?,
            None => self.newest::<Persona>(DefinitionKind::Persona, id).await?.map(|(persona, _)| persona),
        };
        found.map(|persona| persona.body).ok_or_else(|| {
            failed(Code::DefinitionNotFound, format!("persona {id} of agent {} does not exist; define it", agent.id))
        })
    }

    /// A model profile that is defined, or else one of the configuration.
    async fn model(&self, wanted: Option<&str>) -> Result<(ModelTarget, Parameters, u64), Outcome> {
        let Some(wanted) = wanted else { return Ok((ModelTarget::Default, Parameters::default(), WINDOW_TOKENS)) };
        let defined = match DefinitionId::parse(wanted) {
            Ok(id) => self.newest::<definition::ModelProfile>(DefinitionKind::ModelProfile, &id).await?,
            Err(_) => None,
        };
        let Some((profile, _)) = defined else {
            return Ok((ModelTarget::Named(wanted.to_owned()), Parameters::default(), WINDOW_TOKENS));
        };
        let window = profile.model_max_tokens;
        Ok((ModelTarget::Profile(Box::new(profile.into())), Parameters::default(), window))
    }

    /// Whom the persona has make summaries.
    async fn summariser(&self, persona: &PersonaBody) -> Result<Option<Summariser>, Outcome> {
        let settings = persona.compaction.as_ref().filter(|settings| settings.enabled);
        let Some(wanted) = settings.and_then(|settings| settings.model_profile_id.as_ref()) else { return Ok(None) };
        let (target, _, window) = self.model(Some(wanted.as_str())).await?;
        Ok(Some(Summariser { target, window }))
    }

    /// In the order of `ids`.
    async fn tools(&self, ids: &[DefinitionId]) -> Result<Vec<ResolvedTool>, Outcome> {
        let mut tools = Vec::with_capacity(ids.len());
        for some in ids.chunks(READS_AT_ONCE) {
            tools.extend(try_join_all(some.iter().map(|id| self.tool(id))).await?);
        }
        Ok(tools)
    }

    async fn tool(&self, id: &DefinitionId) -> Result<ResolvedTool, Outcome> {
        let Some((tool, version)) = self.newest::<Tool>(DefinitionKind::Tool, id).await? else {
            return Err(failed(Code::DefinitionNotFound, format!("tool {id} does not exist; define it")));
        };
        let target = tool.target_id.clone();
        match tool.target_type {
            TargetType::Workflow => Ok(tool::resolve(tool, version, Target::Nothing)),
            TargetType::Agent => {
                let agent = self.newest::<Agent>(DefinitionKind::Agent, &target).await?;
                let target = agent.map_or(Target::Nothing, |(_, version)| Target::Agent { version });
                Ok(tool::resolve(tool, version, target))
            }
            TargetType::Task => self.task(tool, version, &target).await,
        }
    }

    async fn task(&self, tool: Tool, version: u64, target: &DefinitionId) -> Result<ResolvedTool, Outcome> {
        let Some((task, task_version)) = self.newest::<Task>(DefinitionKind::Task, target).await? else {
            return Ok(tool::resolve(tool, version, Target::Nothing));
        };
        let action = match tool::action_of(&task) {
            Err(_) => None,
            Ok((id, None)) => self.newest::<ActionDef>(DefinitionKind::ActionDef, &id).await?,
            Ok((id, Some(pinned))) => {
                let found = self.at::<ActionDef>(DefinitionKind::ActionDef, &id, pinned).await?;
                found.map(|action| (action, pinned))
            }
        };
        let action = action.as_ref().map(|(action, version)| (action, *version));
        Ok(tool::resolve(tool, version, Target::Task { task: &task, version: task_version, action }))
    }

    async fn newest<T: DeserializeOwned>(
        &self,
        kind: DefinitionKind,
        id: &DefinitionId,
    ) -> Result<Option<(T, u64)>, Outcome> {
        let key: DefinitionKey = (kind, id.clone());
        let row = stored(|| self.deps.definitions.definition(self.namespace, &key)).await?;
        row.map(|row| Ok((read(&row)?, row.version))).transpose()
    }

    async fn at<T: DeserializeOwned>(
        &self,
        kind: DefinitionKind,
        id: &DefinitionId,
        version: u64,
    ) -> Result<Option<T>, Outcome> {
        let key: DefinitionKey = (kind, id.clone());
        let row = stored(|| self.deps.definitions.definition_at(self.namespace, &key, version)).await?;
        row.map(|row| read(&row)).transpose()
    }
}

fn read<T: DeserializeOwned>(row: &DefinitionRow) -> Result<T, Outcome> {
    let parsed = row.content.to::<T>();
    parsed.map_err(|error| failed(Code::DefinitionInvalid, format!("definition {} cannot be read: {error}", row.id)))
}
