//! What befalls the calls of one process.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::failure::Failure;
use tokio::sync::watch;
use tokio::time::Instant;

use super::trace::Trace;
use crate::dice::Dice;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Port {
    Ledger,
    Sessions,
    Commits,
    Journal,
    Archive,
    Leases,
    Conversations,
    Operations,
    Queue,
    Effects,
}

impl Port {
    /// The ports that one database serves.
    pub const STORE: [Port; 7] = [
        Self::Ledger,
        Self::Sessions,
        Self::Commits,
        Self::Journal,
        Self::Leases,
        Self::Conversations,
        Self::Operations,
    ];
}

/// Probabilities per call, and bounds of its delay.
#[derive(Debug, Clone)]
pub struct FaultRates {
    /// Refused: not performed, and the caller knows.
    pub refuse: f64,
    /// Not performed, and the caller cannot know.
    pub lose_request: f64,
    /// Performed, and the caller cannot know.
    pub lose_answer: f64,
    /// Time that a call takes.
    pub delay_ms: Range<u64>,
}

impl FaultRates {
    pub const NONE: FaultRates = FaultRates { refuse: 0.0, lose_request: 0.0, lose_answer: 0.0, delay_ms: 0..1 };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The call is not performed.
    Before,
    /// The call is performed; its answer is not heard.
    After,
}

/// A crash exactly at the given call of the process, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashPoint {
    pub call: u64,
    pub side: Side,
}

/// The faults of one process. Cheap to clone; clones are the same process.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    name: Arc<str>,
    dice: Dice,
    trace: Trace,
    state: Mutex<State>,
    dead: watch::Sender<bool>,
}

struct State {
    rates: FaultRates,
    calls: u64,
    crash: Option<CrashPoint>,
    frozen_until: Option<Instant>,
    away_until: BTreeMap<Port, Instant>,
    /// Names of calls of which the next hangs.
    hanging: Vec<&'static str>,
}

impl Faults {
    pub fn new(name: &str, dice: Dice, rates: FaultRates, trace: Trace) -> Self {
        let (frozen_until, away_until) = (None, BTreeMap::new());
        let state = State { rates, calls: 0, crash: None, frozen_until, away_until, hanging: Vec::new() };
        Self(Arc::new(Inner {
            name: name.into(),
            dice,
            trace,
            state: Mutex::new(state),
            dead: watch::Sender::new(false),
        }))
    }

    /// A process without faults.
    pub fn none(name: &str) -> Self {
        Self::new(name, Dice::new(0), FaultRates::NONE, Trace::new())
    }

    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// Adds a line of this process to the trace.
    pub fn note(&self, what: impl Into<String>) {
        self.0.trace.note(&self.0.name, what);
    }

    /// Crashes at this point of the future.
    pub fn crash_at(&self, point: CrashPoint) {
        self.lock().crash = Some(point);
    }

    /// Crashes now: no call is performed or answered from here on.
    pub fn crash(&self) {
        self.0.trace.note(&self.0.name, "crashes");
        self.0.dead.send_replace(true);
    }

    pub fn is_dead(&self) -> bool {
        *self.0.dead.borrow()
    }

    /// Ends when the process has crashed.
    pub async fn crashed(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.0.dead.subscribe().wait_for(|dead| *dead).await;
    }

    /// Calls of its own services hang for this long, then go on: a partition.
    pub fn freeze(&self, length: Duration) {
        self.0.trace.note(&self.0.name, format!("freezes for {} ms", length.as_millis()));
        self.lock().frozen_until = Some(Instant::now() + length);
    }

    /// Calls of these ports fail for this long.
    pub fn outage(&self, ports: &[Port], length: Duration) {
        self.0.trace.note(&self.0.name, format!("loses {ports:?} for {} ms", length.as_millis()));
        let until = Instant::now() + length;
        self.lock().away_until.extend(ports.iter().map(|port| (*port, until)));
    }

    /// The next call of this name is not performed and never answered, as if its connection were lost and nobody had
    /// noticed. Those after it are.
    pub fn hang(&self, what: &'static str) {
        self.lock().hanging.push(what);
    }

    /// Ends all faults but death.
    pub fn heal(&self) {
        let mut state = self.lock();
        state.rates = FaultRates::NONE;
        state.frozen_until = None;
        state.away_until.clear();
        state.hanging.clear();
        state.crash = None;
    }

    /// Number of calls so far.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// One call of a port, with whatever befalls it.
    pub async fn call<T>(
        &self,
        port: Port,
        what: &'static str,
        perform: impl Future<Output = Result<T, Failure>> + Send,
    ) -> Result<T, Failure> {
        let number = self.enter(what).await;
        if self.hangs(what) {
            std::future::pending::<()>().await;
        }
        let rates = self.lock().rates.clone();
        self.delay(&rates).await;
        let result = if self.is_away(port) {
            Err(Failure::unavailable("scripted outage"))
        } else if self.0.dice.chance(rates.refuse) {
            Err(Failure::unavailable("scripted refusal"))
        } else if self.0.dice.chance(rates.lose_request) {
            Err(Failure::in_doubt("scripted loss of the request"))
        } else {
            let result = perform.await;
            if self.0.dice.chance(rates.lose_answer) {
                Err(Failure::in_doubt("scripted loss of the answer"))
            } else {
                result
            }
        };
        self.leave(number).await;
        if let Err(failure) = &result {
            self.0.trace.note(&self.0.name, format!("{what} fails: {}", failure.message));
        }
        result
    }

    /// One call to the outside world, of a process that may crash. A freeze cuts a process off its
    /// own services only: one that is stopped between its last look at the lease and its call, and
    /// calls when it wakes, cannot be told from a slow network.
    pub async fn pass<T>(&self, what: &'static str, perform: impl Future<Output = T> + Send) -> T {
        self.living().await;
        let number = self.count(what).await;
        let result = perform.await;
        let crash = self.lock().crash;
        self.crash_if(crash, CrashPoint { call: number, side: Side::After }).await;
        self.living().await;
        result
    }

    /// Hangs forever if the process is dead.
    async fn living(&self) {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Hangs forever if the process is dead, and for a while if it is frozen.
    pub async fn alive(&self) {
        loop {
            self.living().await;
            let frozen_until = self.lock().frozen_until.filter(|until| Instant::now() < *until);
            match frozen_until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => return,
            }
        }
    }

    async fn enter(&self, what: &'static str) -> u64 {
        self.alive().await;
        self.count(what).await
    }

    async fn count(&self, what: &'static str) -> u64 {
        let (number, crash) = {
            let mut state = self.lock();
            state.calls += 1;
            (state.calls, state.crash)
        };
        self.0.trace.note(&self.0.name, what);
        self.crash_if(crash, CrashPoint { call: number, side: Side::Before }).await;
        number
    }

    async fn leave(&self, number: u64) {
        let crash = self.lock().crash;
        self.crash_if(crash, CrashPoint { call: number, side: Side::After }).await;
        self.alive().await;
    }

    async fn crash_if(&self, planned: Option<CrashPoint>, here: CrashPoint) {
        if planned == Some(here) {
            self.crash();
            std::future::pending::<()>().await;
        }
    }

    async fn delay(&self, rates: &FaultRates) {
        let delay = self.0.dice.range(rates.delay_ms.clone());
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
            self.alive().await;
        }
    }

    fn is_away(&self, port: Port) -> bool {
        self.lock().away_until.get(&port).is_some_and(|until| Instant::now() < *until)
    }

    fn hangs(&self, what: &str) -> bool {
        let mut state = self.lock();
        let place = state.hanging.iter().position(|name| *name == what);
        if let Some(at) = place {
            state.hanging.remove(at);
        }
        place.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
