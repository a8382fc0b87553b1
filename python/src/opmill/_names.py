"""Names of other libraries for functions of reduce. Imports nothing: python/generate_operators.py
reads it, too. client/cli/command_line_operators.cc takes the same ones."""

FUNCTION_ALIASES = {"mean": "average", "prod": "multiply", "logsumexp": "log_sum_exp",
                    "lse": "log_sum_exp"}
# NumPy's, which methods have.
SHORT_FORMS = {"average": "mean", "multiply": "prod"}
