//! The real binary, from outside: started, used, killed, stopped, restarted.

mod archive;
mod backlog;
mod cli;
mod connected;
mod console;
mod digest;
mod doctor;
mod faults;
mod first_run;
mod fleet;
mod hanging;
mod harness;
mod ingress;
mod kill;
mod outside;
mod rejected;
mod scenario;
mod services;
mod talk;
mod traces;
mod urgent;
