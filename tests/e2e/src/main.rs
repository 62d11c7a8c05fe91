//! The real binary, from outside: started, used, killed, stopped, restarted.

mod console;
mod doctor;
mod faults;
mod harness;
mod ingress;
mod kill;
mod outside;
mod rejected;
mod scenario;
mod services;
mod talk;
mod traces;
