(* Delta reverse mode: dual numbers whose tangent is a term, bound to a name and evaluated once for all inputs.

   The meaning of a term is the tangent that forward mode computes; its evaluation is the transpose of its meaning. *)
From Effgrad Require Export Walk.

Section Delta.
  Context {R : semiring} {P : signature R}.
  Add Ring R : (laws R).
  Local Open Scope R.
  Local Notation cells := (@cells R).

  Inductive term :=
    | Zero
    | Name (name : nat)
    | Scale (factor : R) (term : term)
    | Sum (first second : term).

  Fixpoint meaning (tau : nat -> R) (d : term) : R :=
    match d with
    | Zero => 0
    | Name a => tau a
    | Scale x d => x * meaning tau d
    | Sum d d' => meaning tau d + meaning tau d'
    end.

  (* The reverse pass of one term, with the cotangent of the name that it is bound to. *)
  Fixpoint evaluate (g : R) (d : term) (c : cells) : cells :=
    match d with
    | Zero => c
    | Name a => accumulate c (a, g)
    | Scale x d => evaluate (g * x) d c
    | Sum d d' => evaluate g d' (evaluate g d c)
    end.

  Fixpoint names (d : term) : list nat :=
    match d with Zero => [] | Name a => [a] | Scale _ d => names d | Sum d d' => names d ++ names d' end.

  Lemma evaluate_is_transpose n tau d : forall g c, Forall (fun a => a < n) (names d) ->
    total n (evaluate g d c) tau = total n c tau + g * meaning tau d.
  Proof.
    induction d as [|a|x d IH|d IH d' IH']; intros g c H; cbn [evaluate meaning names] in *.
    - ring.
    - inversion H. now rewrite total_accumulate.
    - rewrite IH by auto. ring.
    - apply Forall_app in H as [H H']. rewrite IH', IH by auto. ring.
  Qed.

  (* What is bound to an operation's name: the sum of its arguments' tangents, scaled. *)
  Definition let_ (targets : list nat) (ps : list R) : term :=
    fold_right (fun '(a, p) d => Sum (Scale p (Name a)) d) Zero (combine targets ps).

  Lemma meaning_let (tau : nat -> R) targets ps : meaning tau (let_ targets ps) = sum2 ps (map tau targets).
  Proof.
    revert ps. unfold let_. induction targets as [|a l IH]; intros [|p ps]; simpl; auto. now rewrite IH.
  Qed.

  Lemma names_let targets ps n : Forall (fun a => a < n) targets -> Forall (fun a => a < n) (names (let_ targets ps)).
  Proof. intros H. revert ps. unfold let_. induction H; intros [|p ps]; simpl; auto. Qed.

  (* Forward mode with terms for tangents denotes forward mode. *)
  Theorem term_is_forward (tau : nat -> R) (o : op P) xs targets :
    meaning tau (let_ targets (partials o xs)) = push o xs (map tau targets).
  Proof. apply meaning_let. Qed.

  Definition evaluate_at (name : nat) (d : term) (g : R) (c : cells) : cells := update name None (evaluate g d c).

  Lemma evaluate_at_adds name targets ps g c tau : Forall (fun a => a < name) targets ->
    total name (evaluate_at name (let_ targets ps) g c) tau = total name c tau + g * sum2 ps (map tau targets).
  Proof.
    intros H. unfold evaluate_at. rewrite <- meaning_let, <- evaluate_is_transpose by now apply names_let.
    apply total_ext; auto. intros i Hi. apply update_other. lia.
  Qed.

  Definition delta : prog P -> nat -> (nat -> R) -> list R -> cells := back term let_ evaluate_at.

  Theorem delta_is_transpose (p : prog P) n x t ws : scoped p n x -> total n (delta p n x ws) t = sum2 ws (forward p n x t).
  Proof. apply back_is_transpose, evaluate_at_adds. Qed.

  Corollary delta_is_forward (p : prog P) n x ws a : scoped p n x -> a < n ->
    value_of (delta p n x ws a) = sum2 ws (forward p n x (unit a)).
  Proof. intros Hs Ha. now rewrite <- total_unit with (n := n), delta_is_transpose by auto. Qed.
End Delta.
