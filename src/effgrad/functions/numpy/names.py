"""The names of the functions of NumPy and `math` without a rule of ours, and why each needs none or has none."""

# Functions that NumPy computes with functions that have rules, or with the program's own.
WRITTEN_IN_NUMPY = {"numpy": "fromfunction frompyfunc row_stack"}
# Functions whose results are constants, by the reason.
CONSTANTS = {
    "numpy": {
        "of integers": """bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
            bitwise_right_shift bitwise_xor diag_indices gcd indices invert lcm left_shift mask_indices packbits
            ravel_multi_index right_shift tril_indices triu_indices unpackbits unravel_index""",
        "made from integers": "bartlett blackman hamming hanning tri",
    },
    "numpy.fft": {"made from integers": "fftfreq rfftfreq"},
    "math": {"of integers": "comb factorial gcd isqrt lcm perm", "constant in steps": "ulp"},
}
NO_RULE = {
    "numpy": {
        "makes a numpy.matrix: use np.block": "asmatrix bmat",
        "text and files": """base_repr binary_repr format_float_positional format_float_scientific fromfile fromregex
            fromstring genfromtxt load loadtxt save savetxt savez savez_compressed""",
        "of dates": "busday_count busday_offset datetime_as_string datetime_data is_busday isnat",
        "reads memory": "nested_iters",
    },
}
# Functions about NumPy itself, which compute nothing with arrays.
ASIDE = """broadcast_shapes get_include get_printoptions getbufsize geterr geterrcall info isdtype isfortran isscalar
    issubdtype iterable mintypecode printoptions promote_types set_printoptions setbufsize seterr seterrcall show_config
    show_runtime test typename"""
