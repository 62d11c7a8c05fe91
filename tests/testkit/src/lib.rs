//! Test support: faithful fakes of every port, contract suites that run on fakes and adapters
//! alike, seeded faults around any port, the crash-point helper, and real servers.

pub mod contract;
pub mod crash;
pub mod dice;
pub mod fake;
pub mod services;
pub mod unreliable;
