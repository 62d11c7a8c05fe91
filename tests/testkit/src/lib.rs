//! Test support: faithful fakes of every port, contract suites that run on fakes and adapters
//! alike, seeded faults around any port, and the crash-point helper.

pub mod contract;
pub mod crash;
pub mod dice;
pub mod fake;
pub mod unreliable;
