//! The repository: its pages, its sources and its recipes.

mod readme_recipes;
mod requirements;
mod tidy;
