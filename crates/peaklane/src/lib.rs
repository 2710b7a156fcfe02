//! The front door of peaklane: what turns files, environment and command line into work for the other rooms.

pub mod load;
