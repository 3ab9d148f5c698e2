"""Pictures of the parts: matplotlib ``Figure`` objects that are built once and then only updated."""
