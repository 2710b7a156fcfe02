//! A session: the calls of one agent at one task, reduced to figures.
