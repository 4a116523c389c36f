//! Checks that the files of a crate don't import from each other in a cycle.

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        path::Path,
    };

    use petgraph::{algo::tarjan_scc, graphmap::DiGraphMap};
    use syn::{ItemMod, ItemUse, UseTree, visit::Visit};

    use crate::step;

    #[test]
    fn no_files_of_a_crate_import_from_each_other() {
        let mut crates: BTreeMap<String, Files> = BTreeMap::new();
        for path in step::tracked_files().unwrap() {
            if path.extension() == Some("rs".as_ref())
                && let Some((name, module)) = module_of(&path)
            {
                let text = fs::read_to_string(step::workspace().join(&path)).unwrap();
                let code = syn::parse_file(&text).unwrap();
                crates.entry(name).or_default().insert(module, code);
            }
        }
        let found: Vec<_> = crates
            .iter()
            .flat_map(|(name, files)| cycles(files).map(move |cycle| (name, cycle)))
            .collect();
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn files_that_import_from_each_other_are_a_cycle() {
        let file = |text| syn::parse_file(text).unwrap();
        let module = |path: &str| path.split_terminator("::").map(str::to_owned).collect();
        let files = Files::from([
            (module(""), file("mod a; mod b; mod c; pub use a::A;")),
            (module("a"), file("use crate::{b::B, c::{self}}; mod d;")),
            (module("a::d"), file("fn d() { super::super::c::f() }")),
            (module("b"), file("fn b() { crate::a::f() }")),
            (
                module("c"),
                file("#[cfg(test)] mod tests { use crate::a::A; }"),
            ),
        ]);
        let found: Vec<_> = cycles(&files).map(BTreeSet::from_iter).collect();
        assert_eq!(found, [BTreeSet::from(["a".to_owned(), "b".to_owned()])]);
    }

    /// The files of a crate, by the path of their module.
    type Files = BTreeMap<Vec<String>, syn::File>;

    /// Returns the crate of a source file in the host, and its module.
    fn module_of(path: &Path) -> Option<(String, Vec<String>)> {
        let mut parts = path.iter().filter_map(|part| part.to_str());
        let (Some("host"), Some(name), Some("src")) = (parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let mut module: Vec<_> = parts
            .map(|part| part.trim_end_matches(".rs").to_owned())
            .collect();
        module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        Some((name.to_owned(), module))
    }

    /// Returns the groups of files that import from each other.
    fn cycles(files: &Files) -> impl Iterator<Item = Vec<String>> {
        let mut graph = DiGraphMap::new();
        for (module, code) in files {
            let mut imports = Imports {
                module,
                files,
                found: BTreeSet::new(),
            };
            imports.visit_file(code);
            for imported in imports.found {
                graph.add_edge(module, imported, ());
            }
        }
        let groups = tarjan_scc(&graph).into_iter();
        groups.filter(|group| group.len() > 1).map(|group| {
            let names = group.into_iter().map(|module| match module.as_slice() {
                [] => "the root".to_owned(),
                parts => parts.join("::"),
            });
            names.collect()
        })
    }

    /// Collects the files that a file imports from, except for tests and the re-exports of its own children.
    struct Imports<'a> {
        module: &'a Vec<String>,
        files: &'a Files,
        found: BTreeSet<&'a Vec<String>>,
    }

    impl Imports<'_> {
        fn add(&mut self, path: &[String], is_export: bool) {
            let mut target = match path.first().map(String::as_str) {
                Some("crate") => Vec::new(),
                Some(_) => self.module.clone(),
                None => return,
            };
            for part in path {
                match part.as_str() {
                    "crate" | "self" => {}
                    "super" => drop(target.pop()),
                    part => target.push(part.to_owned()),
                }
            }
            let is_relative = !["crate", "self", "super"].contains(&path[0].as_str());
            while !self.files.contains_key(&target) {
                if target.pop().is_none() {
                    return;
                }
            }
            let is_below = target.starts_with(self.module);
            if let Some((target, _)) = self.files.get_key_value(&target)
                && target != self.module
                && (is_below || !is_relative)
                && !(is_export && is_below)
            {
                self.found.insert(target);
            }
        }

        fn add_tree(&mut self, tree: &UseTree, mut path: Vec<String>, is_export: bool) {
            match tree {
                UseTree::Path(part) => {
                    path.push(part.ident.to_string());
                    self.add_tree(&part.tree, path, is_export);
                }
                UseTree::Name(name) => {
                    path.push(name.ident.to_string());
                    self.add(&path, is_export);
                }
                UseTree::Rename(name) => {
                    path.push(name.ident.to_string());
                    self.add(&path, is_export);
                }
                UseTree::Glob(_) => self.add(&path, is_export),
                UseTree::Group(group) => {
                    for tree in &group.items {
                        self.add_tree(tree, path.clone(), is_export);
                    }
                }
            }
        }
    }

    impl<'ast> Visit<'ast> for Imports<'_> {
        fn visit_item_mod(&mut self, module: &'ast ItemMod) {
            if !module
                .attrs
                .iter()
                .any(|attribute| attribute.path().is_ident("cfg"))
            {
                syn::visit::visit_item_mod(self, module);
            }
        }

        fn visit_item_use(&mut self, item: &'ast ItemUse) {
            let is_export = !matches!(item.vis, syn::Visibility::Inherited);
            self.add_tree(&item.tree, Vec::new(), is_export);
        }

        fn visit_path(&mut self, path: &'ast syn::Path) {
            if path.segments.len() > 1 {
                let parts: Vec<_> = path
                    .segments
                    .iter()
                    .map(|part| part.ident.to_string())
                    .collect();
                self.add(&parts, false);
            }
            syn::visit::visit_path(self, path);
        }
    }
}
