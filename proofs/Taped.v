(* Taped reverse mode: an operation on the tape is pairs of a name and a partial. *)
From Effgrad Require Export Walk.

Section Taped.
  Context {R : semiring} {P : signature R}.
  Add Ring R : (laws R).
  Local Open Scope R.

  Definition pass_on (name : nat) (sources : list (nat * R)) (g : R) (c : cells) : cells :=
    accumulate_all (map (fun '(a, p) => (a, g * p)) sources) (update name None c).

  Lemma pass_on_adds name targets ps g c tau : Forall (fun a => a < name) targets ->
    total name (pass_on name (combine targets ps) g c) tau = total name c tau + g * sum2 ps (map tau targets).
  Proof.
    intros H. unfold pass_on.
    rewrite (total_ext name c (update name None c) tau tau); auto; [|intros; symmetry; apply update_other; lia].
    generalize (update name None c) as d. revert ps.
    unfold accumulate_all. induction H as [|a targets Ha H IH]; intros [|p ps] d; simpl; try ring.
    rewrite IH, total_accumulate by auto. ring.
  Qed.

  Definition taped : prog P -> nat -> (nat -> R) -> list R -> cells := back (list (nat * R)) (@combine nat R) pass_on.

  Theorem taped_is_transpose (p : prog P) n x t ws : scoped p n x -> total n (taped p n x ws) t = sum2 ws (forward p n x t).
  Proof. apply back_is_transpose, pass_on_adds. Qed.

  Corollary taped_is_forward (p : prog P) n x ws a : scoped p n x -> a < n ->
    value_of (taped p n x ws a) = sum2 ws (forward p n x (unit a)).
  Proof. intros Hs Ha. now rewrite <- total_unit with (n := n), taped_is_transpose by auto. Qed.
End Taped.
