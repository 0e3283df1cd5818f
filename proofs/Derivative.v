(* Forward mode computes the formal derivative of the expression that the program denotes at its input. *)
From Effgrad Require Export Program.

Section Derivative.
  Context {R : semiring} {P : signature R}.
  Add Ring R : (laws R).
  Local Open Scope R.
  Local Notation expr := (expr R (op P)).
  Implicit Types (x u t : nat -> R) (e a b : expr) (es args : list expr).

  (* The expression of each result, along the path that the program takes at this input. *)
  Fixpoint path (p : prog P) (n : nat) (e : nat -> R) (E : nat -> expr) : list expr :=
    match p with
    | Ret ys => map E ys
    | Do o args k =>
        let v := apply P o (map e args) in
        path (k v) (n + 1) (bind n [v] 0 e) (bind n [App o (map E args)] (Const 0) E)
    | Ck q k =>
        let vs := values q n e in
        path (k vs) (n + length vs) (bind n vs 0 e) (bind n (path q n e E) (Const 0) E)
    end.

  Fixpoint subst (es : list expr) (e : expr) : expr :=
    match e with
    | Var i => nth i es (Const 0)
    | Const c => Const c
    | Add a b => Add (subst es a) (subst es b)
    | Mul a b => Mul (subst es a) (subst es b)
    | App o args => App o (map (subst es) args)
    end.

  (* The formal derivative along the direction [u]: sums, products, and the chain rule for primitives. *)
  Fixpoint derivative (u : nat -> R) (e : expr) : expr :=
    match e with
    | Var i => Const (u i)
    | Const _ => Const 0
    | Add a b => Add (derivative u a) (derivative u b)
    | Mul a b => Add (Mul (derivative u a) b) (Mul a (derivative u b))
    | App o args =>
        fold_right (fun '(r, d) sum => Add (Mul (subst args r) d) sum) (Const 0)
          (combine (rule P o) (map (derivative u) args))
    end.

  Lemma eval_ext x (y : nat -> R) e : (forall i, x i = y i) -> eval x e = eval y e.
  Proof.
    intros H. induction e using expr_rect'; simpl; auto; try congruence.
    f_equal. apply map_ext_in. now rewrite <- Forall_forall.
  Qed.

  Lemma eval_subst x es e : eval x (subst es e) = eval (fun i => nth i (map (eval x) es) 0) e.
  Proof.
    induction e using expr_rect'; simpl; try congruence.
    - change 0 with (eval (P := P) x (Const 0)). now rewrite map_nth.
    - f_equal. rewrite map_map. apply map_ext_in. now rewrite <- Forall_forall.
  Qed.

  (* The derivative of a primitive's application is what forward mode pushes. *)
  Lemma eval_derivative_app x u o args :
    eval x (derivative u (App o args)) = push o (map (eval x) args) (map (fun a => eval x (derivative u a)) args).
  Proof.
    unfold push, partials. simpl. rewrite <- (map_map (derivative u) (eval x)).
    generalize (map (derivative u) args) as ds. induction (rule P o) as [|r rs IH]; intros [|d ds]; simpl; auto.
    now rewrite IH, eval_subst.
  Qed.

  Theorem forward_is_derivative x u p : forall n (e t : nat -> R) E,
    (forall i, e i = eval x (E i)) -> (forall i, t i = eval x (derivative u (E i))) ->
    values p n e = map (eval x) (path p n e E) /\
    forward p n e t = map (fun y => eval x (derivative u y)) (path p n e E).
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e t E He Ht; cbn [values forward path].
    - rewrite !map_map. split; now apply map_ext.
    - apply IH; intros i.
      + rewrite (bind_map (eval x)). cbn [map eval]. rewrite map_map, (map_ext e _ He). now apply bind_ext.
      + rewrite (bind_map (fun y => eval x (derivative u y))). cbn [map]. rewrite eval_derivative_app, !map_map.
        rewrite (map_ext e _ He), (map_ext t _ Ht). now apply bind_ext.
    - destruct (IHq n e t E He Ht) as [Hv Hf]. apply IH; intros i.
      + rewrite (bind_map (eval x)), <- Hv. now apply bind_ext.
      + rewrite (bind_map (fun y => eval x (derivative u y))), <- Hf. now apply bind_ext.
  Qed.

  (* From the inputs themselves, moving along [u]. *)
  Corollary forward_is_derivative_of_inputs (p : prog P) n x u :
    forward p n x u = map (fun y => eval x (derivative u y)) (path p n x Var).
  Proof. apply forward_is_derivative; auto. Qed.

  (* A primitive's partials are right if they are what its value moves by, to first order. *)
  Definition along (h : R) (xs ts : list R) : list R := map (fun '(x, t) => x + h * t) (combine xs ts).
  Definition exact (P : signature R) : Prop := forall (o : op P) xs ts h, length xs = length ts ->
    exists r, apply P o (along h xs ts) = apply P o xs + h * sum2 (map (eval (fun i => nth i xs 0)) (rule P o)) ts + h * h * r.

  Lemma collect_remainders x u h args :
    Forall (fun a => exists r, eval (fun i => x i + h * u i) a = eval x a + h * eval x (derivative u a) + h * h * r) args ->
    exists rs, length rs = length args /\
      map (eval (fun i => x i + h * u i)) args =
      along h (map (eval x) args) (map (fun '(d, r) => d + h * r) (combine (map (fun a => eval x (derivative u a)) args) rs)).
  Proof.
    induction 1 as [|a args [r Hr] _ [rs [Hl IH]]]; [now exists []|].
    exists (r :: rs). cbn. split; [congruence|]. rewrite Hr. f_equal; [ring|]. exact IH.
  Qed.

  (* Then the formal derivative is what the program's value moves by: it is the derivative, in every semiring. *)
  Theorem derivative_is_first_order (right : exact P) x u h e :
    exists r, eval (fun i => x i + h * u i) e = eval x e + h * eval x (derivative u e) + h * h * r.
  Proof.
    induction e as [i|c|a b [r Ha] [s Hb]|a b [r Ha] [s Hb]|o args IH] using expr_rect'.
    - exists 0. simpl. ring.
    - exists 0. simpl. ring.
    - exists (r + s). simpl. rewrite Ha, Hb. ring.
    - exists (eval x a * s + r * eval x b + eval x (derivative u a) * eval x (derivative u b)
              + h * (eval x (derivative u a) * s + r * eval x (derivative u b)) + h * h * (r * s)).
      simpl. rewrite Ha, Hb. ring.
    - destruct (collect_remainders _ _ _ _ IH) as [rs [Hl H]]. rewrite eval_derivative_app. cbn [eval]. rewrite H.
      set (ds := map (fun a => eval x (derivative u a)) args).
      assert (length ds = length args) by apply map_length. clearbody ds.
      destruct (right o (map (eval x) args) (map (fun '(d, r) => d + h * r) (combine ds rs)) h) as [r Hr].
      { rewrite !map_length, combine_length. lia. }
      rewrite Hr. unfold push, partials. set (ps := map _ (rule P o)).
      assert (sum2 ps (map (fun '(d, r) => d + h * r) (combine ds rs)) = sum2 ps ds + h * sum2 ps rs) as ->.
      { assert (length ds = length rs) as L by lia. clear - L. revert ds rs L.
        induction ps as [|p ps IH]; intros [|d ds] [|r rs] L; simpl in *; try discriminate; try ring.
        injection L as L. rewrite IH by auto. ring. }
      exists (sum2 ps rs + r). ring.
  Qed.
End Derivative.

(* The primitives + and x, and numbers: the expressions of de Vilhena and Pottier 2023. *)
Inductive arithmetic (R : semiring) := Plus | Times | Number (c : R).
Arguments Plus {R}. Arguments Times {R}. Arguments Number {R}.

Section Arithmetic.
  Variable R : semiring.
  Add Ring R' : (laws R).
  Local Open Scope R.

  Definition Arithmetic : signature R := {|
    op := arithmetic R;
    apply := fun o xs => match o with
      | Plus => nth 0 xs 0 + nth 1 xs 0 | Times => nth 0 xs 0 * nth 1 xs 0 | Number c => c end;
    rule := fun o => match o with
      | Plus => [Const 1; Const 1] | Times => [Var 1; Var 0] | Number _ => [] end |}.

  Theorem arithmetic_is_exact : exact Arithmetic.
  Proof.
    intros [| |c] xs ts h L; unfold along; destruct xs as [|x [|y xs]], ts as [|t [|s ts]];
      try discriminate; simpl; eexists; try (instantiate (1 := 0); ring).
    instantiate (1 := t * s). ring.
  Qed.

  (* Polynomials of one variable, by their coefficients; the derivative of sum a_k X^k is sum k a_k X^(k-1). *)
  Definition polynomial := list R.
  Fixpoint at_ (x : R) (p : polynomial) : R := match p with [] => 0 | a :: p => a + x * at_ x p end.
  Fixpoint sum (p q : polynomial) : polynomial :=
    match p, q with [], q => q | p, [] => p | a :: p, b :: q => (a + b) :: sum p q end.
  Fixpoint product (p q : polynomial) : polynomial :=
    match p with [] => [] | a :: p => sum (map (mul a) q) (0 :: product p q) end.
  Fixpoint times (k : nat) (a : R) : R := match k with O => 0 | S k => a + times k a end.
  Fixpoint weighted (k : nat) (p : polynomial) : polynomial :=
    match p with [] => [] | a :: p => times k a :: weighted (S k) p end.
  Definition prime (p : polynomial) : polynomial := match p with [] => [] | _ :: p => weighted 1 p end.

  (* The polynomial that an expression of one variable denotes. *)
  Fixpoint denotation (e : expr R (arithmetic R)) : polynomial :=
    match e with
    | Var _ => [0; 1]
    | Const c => [c]
    | Add a b => sum (denotation a) (denotation b)
    | Mul a b => product (denotation a) (denotation b)
    | App o args => match o with
        | Plus => sum (nth 0 (map denotation args) []) (nth 1 (map denotation args) [])
        | Times => product (nth 0 (map denotation args) []) (nth 1 (map denotation args) [])
        | Number c => [c] end
    end.

  Lemma at_sum x p : forall q, at_ x (sum p q) = at_ x p + at_ x q.
  Proof. induction p as [|a p IH]; intros [|b q]; simpl; rewrite ?IH; ring. Qed.
  Lemma at_map x a p : at_ x (map (mul a) p) = a * at_ x p.
  Proof. induction p; simpl; rewrite ?IHp; ring. Qed.
  Lemma at_product x p q : at_ x (product p q) = at_ x p * at_ x q.
  Proof. induction p as [|a p IH]; simpl; rewrite ?at_sum, ?at_map; simpl; rewrite ?IH; ring. Qed.
  Lemma at_weighted x p : forall k, at_ x (weighted (S k) p) = at_ x (weighted k p) + at_ x p.
  Proof. induction p as [|a p IH]; intros k; simpl; rewrite ?IH; ring. Qed.
  Lemma at_prime x a p : at_ x (prime (a :: p)) = at_ x p + x * at_ x (prime p).
  Proof. simpl. rewrite at_weighted. destruct p; simpl; ring. Qed.
  Lemma at_prime_sum x p : forall q, at_ x (prime (sum p q)) = at_ x (prime p) + at_ x (prime q).
  Proof.
    induction p as [|a p IH]; intros [|b q]; cbn [sum]; [simpl; ring..|].
    rewrite !at_prime, IH, at_sum. ring.
  Qed.
  Lemma at_prime_map x a p : at_ x (prime (map (mul a) p)) = a * at_ x (prime p).
  Proof. induction p; cbn [map]; [simpl; ring|]. rewrite !at_prime, IHp, at_map. ring. Qed.
  Lemma at_prime_product x p q :
    at_ x (prime (product p q)) = at_ x (prime p) * at_ x q + at_ x p * at_ x (prime q).
  Proof.
    induction p as [|a p IH]; cbn [product]; [simpl; ring|].
    rewrite at_prime_sum, at_prime_map, !at_prime, at_product, IH. cbn [at_]. ring.
  Qed.

  Lemma at_denotation x e : eval (P := Arithmetic) (fun _ => x) e = at_ x (denotation e).
  Proof.
    induction e as [i|c|a b Ha Hb|a b Ha Hb|o args IH] using expr_rect'; cbn [denotation eval];
      rewrite ?at_sum, ?at_product, ?Ha, ?Hb; try (simpl; ring).
    destruct o; cbn -[nth]; rewrite ?at_sum, ?at_product; try (simpl; ring);
      destruct IH as [|a args Ha [|b args' Hb IH]]; simpl; rewrite ?Ha, ?Hb; ring.
  Qed.

  (* "diff e represents E'": the formal derivative of an expression denotes the derivative of what it denotes. *)
  Theorem derivative_represents x e :
    eval (P := Arithmetic) (fun _ => x) (derivative (P := Arithmetic) (fun _ => 1) e) = at_ x (prime (denotation e)).
  Proof.
    induction e as [i|c|a b Ha Hb|a b Ha Hb|o args IH] using expr_rect'; cbn [denotation derivative eval];
      rewrite ?at_prime_sum, ?at_prime_product, <- ?at_denotation, ?Ha, ?Hb; try (simpl; ring).
    destruct o; cbn -[nth]; rewrite ?at_prime_sum, ?at_prime_product; try (simpl; ring);
      destruct IH as [|a args Ha [|b args' Hb IH]]; simpl; rewrite ?Ha, ?Hb, <- ?at_denotation; ring.
  Qed.
End Arithmetic.

(* So forward mode, on any program of + and x, gives the derivatives of the polynomials of its results. *)
Corollary forward_represents {R : semiring} (p : prog (Arithmetic R)) (x : R) :
  let E := map (denotation R) (path p 1 (fun _ => x) Var) in
  values p 1 (fun _ => x) = map (at_ R x) E /\ forward p 1 (fun _ => x) (fun _ => one) = map (fun e => at_ R x (prime R e)) E.
Proof.
  intros E. destruct (forward_is_derivative (P := Arithmetic R) (fun _ => x) (fun _ => one) p 1
    (fun _ => x) (fun _ => one) Var) as [Hv Hf]; auto. unfold E. rewrite Hv, Hf, !map_map.
  split; apply map_ext; intros y; [apply at_denotation|apply derivative_represents].
Qed.
