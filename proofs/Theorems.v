(* Every theorem, and what it assumes: each line of the output has to be "Closed under the global context". *)
From Effgrad Require Import Derivative Reverse Taped Delta Continuation SecondOrder Nesting Effects.

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
Print Assumptions delta_is_transpose.
Print Assumptions delta_is_forward.
Print Assumptions continuation_is_transpose.
Print Assumptions continuation_is_forward.
Print Assumptions second_order_is_derivative.
Print Assumptions forward_over_forward.
Print Assumptions forward_over_stateful.
Print Assumptions forward_over_taped.
Print Assumptions forward_over_delta.
Print Assumptions forward_over_continuation.
Print Assumptions ownership.
Print Assumptions no_confusion.
Print Assumptions result_forwarding.
Print Assumptions reversing_is_pullback.
Print Assumptions evaluation_in_order.
Print Assumptions forward_in_order.
Print Assumptions reverse_in_order.
Print Assumptions forward_is_linear.
Print Assumptions reverse_is_linear.
Print Assumptions continuation_is_linear.
