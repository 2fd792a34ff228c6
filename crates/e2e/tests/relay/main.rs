//! The relay for pages.

mod browser;
mod codap;
mod pages;
mod redis;
