(* Second derivatives: the second-order mode, and one mode inside another.

   A mode inside another computes with the other's numbers. Dual numbers are a commutative semiring again, so every
   theorem about a mode holds over them: forward over forward and forward over reverse need no proofs of their own. *)
From Effgrad Require Export Derivative Taped Delta Continuation.

Section ChainRule.
  Context {R : semiring} {P : signature R}.
  Add Ring R : (laws R).
  Local Open Scope R.
  Local Notation expr := (expr R (op P)).
  Implicit Types (x u : nat -> R) (e : expr) (es args : list expr).

  Definition names (l : list R) : nat -> R := fun i => nth i l 0.

  (* The chain rule for a substitution. *)
  Lemma derivative_subst x u es e :
    eval x (derivative u (subst es e)) =
    eval (names (map (eval x) es)) (derivative (names (map (fun a => eval x (derivative u a)) es)) e).
  Proof.
    induction e as [i|c|a b Ha Hb|a b Ha Hb|o args IH] using expr_rect'.
    - cbn. unfold names. change 0 with (eval (P := P) x (derivative u (Const 0))).
      now rewrite (map_nth (fun a => eval x (derivative u a))).
    - reflexivity.
    - cbn [subst derivative eval]. now rewrite Ha, Hb.
    - cbn [subst derivative eval]. now rewrite Ha, Hb, !eval_subst.
    - cbn [subst]. rewrite !eval_derivative_app, !map_map. f_equal; apply map_ext_in; intros a Ia.
      + apply eval_subst.
      + rewrite Forall_forall in IH. now apply IH.
  Qed.

  (* The second derivative of an application: the curvature of the primitive, and its partials bent. *)
  Definition curve (o : op P) (xs ts ss : list R) : R :=
    sum2 (map (fun r => eval (names xs) (derivative (names ts) r)) (rule P o)) ts + push o xs ss.

  Lemma eval_second_app x u o args :
    eval x (derivative u (derivative u (App o args))) =
    curve o (map (eval x) args) (map (fun a => eval x (derivative u a)) args)
      (map (fun a => eval x (derivative u (derivative u a))) args).
  Proof.
    unfold curve, push, partials. cbn [derivative].
    set (xs := map (eval x) args). set (ts := map (fun a => eval x (derivative u a)) args).
    assert (forall rs ds, eval x (derivative u (fold_right (fun '(r, d) sum => Add (Mul (subst args r) d) sum) (Const 0) (combine rs ds)))
      = sum2 (map (fun r => eval (names xs) (derivative (names ts) r)) rs) (map (eval x) ds)
        + sum2 (map (eval (fun i => nth i xs 0)) rs) (map (fun d => eval x (derivative u d)) ds)) as H.
    { induction rs as [|r rs IH]; intros [|d ds]; cbn [combine fold_right derivative eval map sum2]; try ring.
      rewrite IH, derivative_subst, eval_subst. fold xs ts. unfold names. ring. }
    rewrite H, !map_map. reflexivity.
  Qed.
End ChainRule.

Section SecondOrder.
  Context {R : semiring} {P : signature R}.
  Add Ring R2 : (laws R).
  Local Open Scope R.

  (* Value, first and second derivative along a direction, in one pass. *)
  Fixpoint second_order (p : prog P) (n : nat) (e t s : nat -> R) : list R :=
    match p with
    | Ret ys => map s ys
    | Do o args k =>
        let xs := map e args in
        let ts := map t args in
        let v := apply P o xs in
        second_order (k v) (n + 1) (bind n [v] 0 e) (bind n [push o xs ts] 0 t) (bind n [curve o xs ts (map s args)] 0 s)
    | Ck q k =>
        let vs := values q n e in
        second_order (k vs) (n + length vs) (bind n vs 0 e) (bind n (forward q n e t) 0 t) (bind n (second_order q n e t s) 0 s)
    end.

  Theorem second_order_is_derivative (x u : nat -> R) p : forall n (e t s : nat -> R) (E : nat -> expr R (op P)),
    (forall i, e i = eval x (E i)) -> (forall i, t i = eval x (derivative u (E i))) ->
    (forall i, s i = eval x (derivative u (derivative u (E i)))) ->
    second_order p n e t s = map (fun y => eval x (derivative u (derivative u y))) (path p n e E).
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e t s E He Ht Hs; cbn [second_order path].
    - rewrite map_map. now apply map_ext.
    - apply IH; intros i.
      + rewrite (bind_map (eval x)). cbn [map eval]. rewrite map_map, (map_ext e _ He). now apply bind_ext.
      + rewrite (bind_map (fun y => eval x (derivative u y))). cbn [map]. rewrite eval_derivative_app, !map_map.
        rewrite (map_ext e _ He), (map_ext t _ Ht). now apply bind_ext.
      + rewrite (bind_map (fun y => eval x (derivative u (derivative u y)))). cbn [map]. rewrite eval_second_app, !map_map.
        rewrite (map_ext e _ He), (map_ext t _ Ht), (map_ext s _ Hs). now apply bind_ext.
    - destruct (forward_is_derivative x u q n e t E He Ht) as [Hv Hf]. apply IH; intros i.
      + rewrite (bind_map (eval x)), <- Hv. now apply bind_ext.
      + rewrite (bind_map (fun y => eval x (derivative u y))), <- Hf. now apply bind_ext.
      + rewrite (bind_map (fun y => eval x (derivative u (derivative u y)))), <- (IHq n e t s E He Ht Hs). now apply bind_ext.
  Qed.
End SecondOrder.

Section Duals.
  Variable R : semiring.
  Add Ring R3 : (laws R).
  Local Open Scope R.

  Definition dual : semiring.
  Proof.
    refine {|
      carrier := R * R;
      zero := (0, 0);
      one := (1, 0);
      add := fun a b => (fst a + fst b, snd a + snd b);
      mul := fun a b => (fst a * fst b, snd a * fst b + fst a * snd b) |}.
    constructor; intros; repeat match goal with x : (_ * _)%type |- _ => destruct x end; cbn; f_equal; ring.
  Defined.

  Variable P : signature R.
  Local Notation expr := (expr R (op P)).

  Fixpoint lift (e : expr) : Program.expr dual (op P) :=
    match e with
    | Var i => Var i
    | Const c => Const ((c, 0) : dual)
    | Add a b => Add (lift a) (lift b)
    | Mul a b => Mul (lift a) (lift b)
    | App o args => App o (map lift args)
    end.

  (* The primitives of forward mode's numbers: what its clause does. *)
  Definition dual_apply (o : op P) (xs : list (R * R)) : R * R :=
    (apply P o (map fst xs), push o (map fst xs) (map snd xs)).
  Definition dual_signature : signature dual := Build_signature dual (op P) dual_apply (fun o => map lift (rule P o)).
  Local Notation D := dual_signature.

  (* The rest of the program sees the primal only. *)
  Fixpoint lift_prog (p : prog P) : prog D :=
    match p with
    | Ret ys => Ret ys
    | Do o args k => Do (P := D) o args (fun v => lift_prog (k (fst v)))
    | Ck q k => Ck (lift_prog q) (fun vs => lift_prog (k (map fst vs)))
    end.

  (* Evaluation over dual numbers is evaluation and differentiation. *)
  Lemma eval_lift (z : nat -> dual) e :
    eval (P := D) z (lift e) = (eval (fun i => fst (z i)) e, eval (fun i => fst (z i)) (derivative (fun i => snd (z i)) e)).
  Proof.
    induction e as [i|c|a b Ha Hb|a b Ha Hb|o args IH] using expr_rect'.
    - cbn. now destruct (z i).
    - reflexivity.
    - cbn. now rewrite Ha, Hb.
    - cbn. now rewrite Ha, Hb.
    - rewrite eval_derivative_app. cbn. unfold dual_apply. rewrite !map_map. rewrite Forall_forall in IH.
      f_equal; f_equal; apply map_ext_in; intros a Ia; now rewrite IH.
  Qed.

  Lemma lift_subst es e : lift (subst es e) = subst (P := D) (map lift es) (lift e).
  Proof.
    induction e as [i|c|a b Ha Hb|a b Ha Hb|o args IH] using expr_rect'; cbn; try congruence.
    - change (Const (op := op P) ((0, 0) : dual)) with (lift (Const 0)). now rewrite map_nth.
    - f_equal. rewrite !map_map. apply map_ext_in. now rewrite <- Forall_forall.
  Qed.

  (* A direction of the inner derivative is a constant to the outer one. *)
  Definition constant (u : nat -> R) : nat -> dual := fun i => (u i, 0).

  Lemma derivative_lift u e : derivative (P := D) (constant u) (lift e) = lift (derivative u e).
  Proof.
    induction e as [i|c|a b Ha Hb|a b Ha Hb|o args IH] using expr_rect'; cbn; try reflexivity; try congruence.
    match goal with |- context [combine _ ?l] => replace l with (map lift (map (derivative u) args)) end.
    2: { rewrite !map_map. apply map_ext_in. rewrite Forall_forall in IH. intros a Ia. symmetry. now apply IH. }
    generalize (map (derivative u) args) as ds.
    induction (rule P o) as [|r rs IHr]; intros [|d ds]; cbn; auto. now rewrite IHr, lift_subst.
  Qed.

  Lemma fst_bind n vs (e : nat -> dual) i : fst (bind n vs (zero : dual) e i) = bind n (map fst vs) 0 (fun i => fst (e i)) i.
  Proof. apply (bind_map fst). Qed.

  Lemma values_ext (p : prog P) : forall n (e e' : nat -> R), (forall i, e i = e' i) -> values p n e = values p n e'.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e e' H; cbn [values].
    - now apply map_ext.
    - rewrite (map_ext e e' H). apply IH. now apply bind_ext.
    - rewrite (IHq n e e' H). apply IH. now apply bind_ext.
  Qed.

  Lemma values_lift p : forall n (z : nat -> dual), map fst (values (lift_prog p) n z) = values p n (fun i => fst (z i)).
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n z; cbn [values lift_prog].
    - now rewrite map_map.
    - rewrite IH. cbn [apply dual_signature]; unfold dual_apply; cbn [fst]. rewrite map_map. apply values_ext. intros i. now rewrite fst_bind.
    - rewrite IH, IHq. rewrite <- (IHq n z) at 3. rewrite map_length. apply values_ext. intros i. now rewrite fst_bind, IHq.
  Qed.

  Lemma path_ext (p : prog P) : forall n (e e' : nat -> R) E E', (forall i, e i = e' i) -> (forall i, E i = E' i) ->
    path p n e E = path p n e' E'.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e e' E E' H H'; cbn [path].
    - now apply map_ext.
    - rewrite (map_ext e e' H), (map_ext E E' H'). apply IH; now apply bind_ext.
    - rewrite (values_ext q n e e' H), (IHq n e e' E E') by auto. apply IH; now apply bind_ext.
  Qed.

  Lemma path_ext_dual (p : prog D) : forall n (e : nat -> dual) E E', (forall i, E i = E' i) -> path p n e E = path p n e E'.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e E E' H'; cbn [path].
    - now apply map_ext.
    - rewrite (map_ext E E' H'). apply IH. now apply bind_ext.
    - rewrite (IHq n e E E') by auto. apply IH. now apply bind_ext.
  Qed.

  Lemma path_lift p : forall n (z : nat -> dual) (E : nat -> expr),
    path (lift_prog p) n z (fun i => lift (E i)) = map lift (path p n (fun i => fst (z i)) E).
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n z E; cbn [path lift_prog].
    - now rewrite map_map.
    - cbn [apply dual_signature]; unfold dual_apply; cbn [fst]. rewrite (path_ext_dual _ _ _ _ (fun i => lift (bind n [App o (map E args)] (Const 0) E i))).
      + rewrite IH. f_equal. rewrite map_map. apply path_ext; auto. intros i. now rewrite fst_bind.
      + intros i. rewrite (bind_map lift). cbn. now rewrite map_map.
    - rewrite (path_ext_dual _ _ _ _ (fun i => lift (bind n (path q n (fun i => fst (z i)) E) (Const 0) E i))).
      + rewrite IH, values_lift. f_equal. rewrite <- (values_lift q n z), map_length. apply path_ext; auto.
        intros i. now rewrite fst_bind.
      + intros i. rewrite (bind_map lift), <- IHq. reflexivity.
  Qed.

  (* Forward mode inside forward mode: the tangent of a tangent is the second derivative. *)
  Theorem forward_over_forward p n (x u v : nat -> R) :
    forward (lift_prog p) n (fun i => (x i, v i) : dual) (constant u) =
    map (fun y => (eval x (derivative u y), eval x (derivative v (derivative u y))) : dual) (path p n x Var).
  Proof.
    rewrite forward_is_derivative_of_inputs. rewrite (path_ext_dual _ _ _ Var (fun i => lift (Var i))) by reflexivity.
    rewrite path_lift, map_map. apply map_ext. intros y. now rewrite derivative_lift, eval_lift.
  Qed.

  Lemma scoped_lift p : forall n (z : nat -> dual) x, (forall i, fst (z i) = x i) -> scoped p n x -> scoped (lift_prog p) n z.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n z x H Hs; cbn [scoped lift_prog] in *; auto.
    - destruct Hs as [Ha Hk]. split; auto. cbn [apply dual_signature]; unfold dual_apply; cbn [fst]. rewrite map_map, (map_ext _ _ H).
      eapply IH; [|exact Hk]. intros i. rewrite fst_bind. now apply bind_ext.
    - destruct Hs as [Hq Hk]. split; [now apply (IHq n z x)|].
      assert (map fst (values (lift_prog q) n z) = values q n x) as Hv by (rewrite values_lift; now apply values_ext).
      assert (length (values (lift_prog q) n z) = length (values q n x)) as Hl by (rewrite <- Hv; symmetry; apply map_length).
      rewrite Hv, Hl. eapply IH; [|exact Hk]. intros i. rewrite fst_bind, Hv. now apply bind_ext.
  Qed.

  Lemma snd_sum2 ws (ys : list expr) x u v :
    snd (sum2 (map (fun w => (w, 0) : dual) ws)
      (map (fun y => (eval x (derivative u y), eval x (derivative v (derivative u y))) : dual) ys)) =
    sum2 ws (map (fun y => eval x (derivative v (derivative u y))) ys).
  Proof. revert ys. induction ws as [|w ws IH]; intros [|y ys]; cbn; auto. rewrite IH. ring. Qed.

  (* Any reverse mode inside forward mode: the tangents of the cotangents are the Hessian times [v], where a mode is
     whatever agrees with forward mode over every semiring. *)
  Theorem forward_over_reverse p n (x v : nat -> R) ws a (mode : prog D -> nat -> (nat -> dual) -> list dual -> cells) :
    (forall p n x ws a, scoped p n x -> a < n -> value_of (mode p n x ws a) = sum2 ws (forward p n x (unit a))) ->
    scoped p n x -> a < n ->
    snd (value_of (mode (lift_prog p) n (fun i => (x i, v i)) (map (fun w => (w, 0)) ws) a) : dual) =
    sum2 ws (map (fun y => eval x (derivative v (derivative (unit a) y))) (path p n x Var)).
  Proof.
    intros Hm Hs Ha. rewrite Hm; auto; [|now apply scoped_lift with (x := x)].
    rewrite <- snd_sum2, <- forward_over_forward. f_equal. f_equal. apply forward_ext.
    - now apply scoped_lift with (x := x).
    - intros i _. unfold unit, constant. now destruct (Nat.eqb i a).
  Qed.
End Duals.

(* Hessians by forward over each reverse mode. *)
Section Hessians.
  Context {R : semiring} {P : signature R}.
  Variables (p : prog P) (n : nat) (x v : nat -> R) (ws : list R) (a : nat).
  Hypotheses (Hs : scoped p n x) (Ha : a < n).
  Local Notation z := (fun i => (x i, v i) : dual R).
  Local Notation seeds := (map (fun w => (w, zero) : dual R) ws).
  Local Notation hessian := (sum2 ws (map (fun y => eval x (derivative v (derivative (unit a) y))) (path p n x Var))).

  Corollary forward_over_stateful again : snd (value_of (pullback again (lift_prog R P p) n z seeds a)) = hessian.
  Proof. apply (forward_over_reverse R P p n x v ws a (pullback again)); auto. intros. now apply reverse_is_forward. Qed.
  Corollary forward_over_taped : snd (value_of (taped (lift_prog R P p) n z seeds a)) = hessian.
  Proof. apply (forward_over_reverse R P p n x v ws a taped); auto. intros. now apply taped_is_forward. Qed.
  Corollary forward_over_delta : snd (value_of (delta (lift_prog R P p) n z seeds a)) = hessian.
  Proof. apply (forward_over_reverse R P p n x v ws a delta); auto. intros. now apply delta_is_forward. Qed.
  Corollary forward_over_continuation : snd (value_of (continuation (lift_prog R P p) n z seeds a)) = hessian.
  Proof. apply (forward_over_reverse R P p n x v ws a continuation); auto. intros. now apply continuation_is_forward. Qed.
End Hessians.
