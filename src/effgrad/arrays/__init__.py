"""The values of a program: traced values, arrays that are written to, arrays of other libraries."""
