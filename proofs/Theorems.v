(* Every theorem, and what it assumes: each line of the output has to be "Closed under the global context". *)
From Effgrad Require Import Derivative Reverse Taped Delta.

Print Assumptions forward_is_derivative.
Print Assumptions forward_is_derivative_of_inputs.
Print Assumptions derivative_is_first_order.
Print Assumptions arithmetic_is_exact.
Print Assumptions derivative_represents.
Print Assumptions forward_represents.
Print Assumptions reverse_is_transpose.
Print Assumptions reverse_is_forward.
Print Assumptions taped_is_transpose.
Print Assumptions taped_is_forward.
Print Assumptions term_is_forward.
Print Assumptions evaluate_is_transpose.
Print Assumptions delta_is_forward.
