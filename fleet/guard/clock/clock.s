// A package with a function without a body needs a file of assembly.
