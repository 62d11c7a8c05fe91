//! What turns and tools ask for, of a process that may die: models, tools, definitions and memories. Failures
//! of models and tools are outcomes, so they are scripted by the world, not here.

use async_trait::async_trait;
use domain::chat::{ChatCall, ChatOutcome, ModelTarget};
use domain::definition::NewDefinition;
use domain::failure::Failure;
use domain::memory::{Embedding, MemoryHits, MemoryKey, MemoryQuery, NewMemory};
use domain::ports::{
    ActionCall, ActionFailure, ActionRunner, Bill, Defined, DefinitionHead, DefinitionKey, DefinitionPage,
    DefinitionQuery, DefinitionRow, DefinitionVersion, Definitions, DeltaSink, Memories, MemoryListQuery, MemoryPage,
    Models, Probe, Remembered, Unembedded,
};
use schemas::id::{MemoryId, Namespace};
use schemas::memory::{Memory, MemoryOwner};
use serde_json::Value;

use super::{Port, Unreliable};

#[async_trait]
impl<P: Models + ?Sized> Models for Unreliable<P> {
    async fn chat(&self, call: &ChatCall, sink: Option<&dyn DeltaSink>) -> ChatOutcome {
        self.faults.pass("models.chat", self.inner.chat(call, sink)).await
    }

    fn provider(&self) -> String {
        self.inner.provider()
    }

    fn cost_of_input(&self, target: &ModelTarget, tokens: u64) -> f64 {
        self.inner.cost_of_input(target, tokens)
    }
}

#[async_trait]
impl<P: ActionRunner + ?Sized> ActionRunner for Unreliable<P> {
    async fn run(&self, call: &ActionCall) -> Result<Value, ActionFailure> {
        self.faults.pass("actions.run", self.inner.run(call)).await
    }

    async fn run_billed(&self, call: &ActionCall, bill: &dyn Bill) -> Result<Value, ActionFailure> {
        self.faults.pass("actions.run", self.inner.run_billed(call, bill)).await
    }

    async fn probe(&self, call: &ActionCall) -> Probe {
        self.faults.pass("actions.probe", self.inner.probe(call)).await
    }
}

/// They are in the database that has the conversations.
#[async_trait]
impl<P: Definitions + ?Sized> Definitions for Unreliable<P> {
    async fn define(&self, namespace: &Namespace, items: &[NewDefinition]) -> Result<Vec<Defined>, Failure> {
        self.faults.call(Port::Conversations, "definitions.define", self.inner.define(namespace, items)).await
    }

    async fn definition(&self, namespace: &Namespace, key: &DefinitionKey) -> Result<Option<DefinitionRow>, Failure> {
        self.faults.call(Port::Conversations, "definitions.definition", self.inner.definition(namespace, key)).await
    }

    async fn definition_at(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        version: u64,
    ) -> Result<Option<DefinitionRow>, Failure> {
        let found = self.inner.definition_at(namespace, key, version);
        self.faults.call(Port::Conversations, "definitions.definition_at", found).await
    }

    async fn known(&self, namespace: &Namespace, keys: &[DefinitionKey]) -> Result<Vec<DefinitionHead>, Failure> {
        self.faults.call(Port::Conversations, "definitions.known", self.inner.known(namespace, keys)).await
    }

    async fn versions(
        &self,
        namespace: &Namespace,
        key: &DefinitionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DefinitionVersion>, Failure> {
        let found = self.inner.versions(namespace, key, before, limit);
        self.faults.call(Port::Conversations, "definitions.versions", found).await
    }

    async fn definitions(&self, query: &DefinitionQuery) -> Result<DefinitionPage, Failure> {
        self.faults.call(Port::Conversations, "definitions.definitions", self.inner.definitions(query)).await
    }
}

/// Memories are there, too.
#[async_trait]
impl<P: Memories + ?Sized> Memories for Unreliable<P> {
    async fn write(&self, owner: &MemoryOwner, memory: &NewMemory) -> Result<Remembered, Failure> {
        self.faults.call(Port::Conversations, "memories.write", self.inner.write(owner, memory)).await
    }

    async fn read(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<Option<Memory>, Failure> {
        self.faults.call(Port::Conversations, "memories.read", self.inner.read(owner, key)).await
    }

    async fn search(&self, owner: &MemoryOwner, query: &MemoryQuery) -> Result<MemoryHits, Failure> {
        self.faults.call(Port::Conversations, "memories.search", self.inner.search(owner, query)).await
    }

    async fn list(&self, owner: &MemoryOwner, query: &MemoryListQuery) -> Result<MemoryPage, Failure> {
        self.faults.call(Port::Conversations, "memories.list", self.inner.list(owner, query)).await
    }

    async fn delete(&self, owner: &MemoryOwner, key: &MemoryKey) -> Result<bool, Failure> {
        self.faults.call(Port::Conversations, "memories.delete", self.inner.delete(owner, key)).await
    }

    async fn unembedded(
        &self,
        owner: &MemoryOwner,
        of: Option<&str>,
        after: Option<&MemoryId>,
        limit: usize,
    ) -> Result<Vec<Unembedded>, Failure> {
        let found = self.inner.unembedded(owner, of, after, limit);
        self.faults.call(Port::Conversations, "memories.unembedded", found).await
    }

    async fn embed(
        &self,
        owner: &MemoryOwner,
        id: &MemoryId,
        version: u64,
        embedding: &Embedding,
    ) -> Result<bool, Failure> {
        let done = self.inner.embed(owner, id, version, embedding);
        self.faults.call(Port::Conversations, "memories.embed", done).await
    }
}
