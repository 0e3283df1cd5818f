(* Programs, primitives with stated partials, evaluation and forward mode.

   A program is an interaction tree (define by run): the next operation may depend on the values so far, so loops,
   branches and recursion of the host language need no syntax of their own. A handler is a function on these trees. *)
From Effgrad Require Export Semiring.

Section Expressions.
  Variable R : semiring.
  Variable op : Type.

  (* The language of rules: the partials of a primitive are written with primitives. *)
  Inductive expr :=
    | Var (i : nat)
    | Const (c : R)
    | Add (a b : expr)
    | Mul (a b : expr)
    | App (o : op) (args : list expr).

  (* Coq's own induction principle says nothing of the arguments of [App]. *)
  Fixpoint expr_rect' (P : expr -> Prop) (var : forall i, P (Var i)) (const : forall c, P (Const c))
    (sum : forall a b, P a -> P b -> P (Add a b)) (product : forall a b, P a -> P b -> P (Mul a b))
    (app : forall o args, Forall P args -> P (App o args)) (e : expr) : P e :=
    match e with
    | Var i => var i
    | Const c => const c
    | Add a b => sum a b (expr_rect' P var const sum product app a) (expr_rect' P var const sum product app b)
    | Mul a b => product a b (expr_rect' P var const sum product app a) (expr_rect' P var const sum product app b)
    | App o args => app o args ((fix all l := match l return Forall P l with
        | [] => Forall_nil P
        | a :: l => Forall_cons a (expr_rect' P var const sum product app a) (all l) end) args)
    end.
End Expressions.
Arguments Var {R op}. Arguments Const {R op}. Arguments Add {R op}. Arguments Mul {R op}. Arguments App {R op}.

(* A primitive: its implementation, and one partial for each argument. Nothing is assumed of either. *)
Record signature (R : semiring) := {
  op : Type;
  apply : op -> list R -> R;
  rule : op -> list (expr R op) }.
Arguments op {R}. Arguments apply {R}. Arguments rule {R}.

Section Programs.
  Context {R : semiring} {P : signature R}.
  Local Open Scope R.

  Fixpoint eval (x : nat -> R) (e : expr R (op P)) : R :=
    match e with
    | Var i => x i
    | Const c => c
    | Add a b => eval x a + eval x b
    | Mul a b => eval x a * eval x b
    | App o args => apply P o (map (eval x) args)
    end.

  Definition partials (o : op P) (xs : list R) : list R := map (eval (fun i => nth i xs 0)) (rule P o).

  Inductive prog :=
    | Ret (ys : list nat)                                       (* the results, by name *)
    | Do (o : op P) (args : list nat) (k : R -> prog)           (* an operation; the rest may look at its value *)
    | Ck (q : prog) (k : list R -> prog).                       (* a checkpointed part with its results; they nest *)

  (* Evaluation: the clause applies the primitive and resumes. *)
  Fixpoint values (p : prog) (n : nat) (e : nat -> R) : list R :=
    match p with
    | Ret ys => map e ys
    | Do o args k => let v := apply P o (map e args) in values (k v) (n + 1) (bind n [v] 0 e)
    | Ck q k => let vs := values q n e in values (k vs) (n + length vs) (bind n vs 0 e)
    end.

  (* The tangent of a result: the sum of what comes through each argument. *)
  Definition push (o : op P) (xs ts : list R) : R := sum2 (partials o xs) ts.

  (* Forward mode: every value carries its tangent. It has no clause for checkpoints, which just run. *)
  Fixpoint forward (p : prog) (n : nat) (e t : nat -> R) : list R :=
    match p with
    | Ret ys => map t ys
    | Do o args k =>
        let xs := map e args in
        let v := apply P o xs in
        forward (k v) (n + 1) (bind n [v] 0 e) (bind n [push o xs (map t args)] 0 t)
    | Ck q k =>
        let vs := values q n e in
        forward (k vs) (n + length vs) (bind n vs 0 e) (bind n (forward q n e t) 0 t)
    end.

  (* On its path at this input, the program names only values that it has. *)
  Fixpoint scoped (p : prog) (n : nat) (e : nat -> R) : Prop :=
    match p with
    | Ret ys => Forall (fun y => y < n) ys
    | Do o args k =>
        Forall (fun a => a < n) args /\
        (let v := apply P o (map e args) in scoped (k v) (n + 1) (bind n [v] 0 e))
    | Ck q k => scoped q n e /\ (let vs := values q n e in scoped (k vs) (n + length vs) (bind n vs 0 e))
    end.

  Lemma length_forward p : forall n e t, length (forward p n e t) = length (values p n e).
  Proof. induction p; intros; simpl; auto. now rewrite !map_length. Qed.

  Lemma map_ext_below {A} (f g : nat -> A) n ys : (forall i, i < n -> f i = g i) -> Forall (fun y => y < n) ys ->
    map f ys = map g ys.
  Proof. intros H. induction 1; simpl; auto. now rewrite IHForall, H. Qed.

  Lemma bind_ext_below {A} n vs (d : A) e e' : (forall i, i < n -> e i = e' i) ->
    forall i, bind n vs d e i = bind n vs d e' i.
  Proof. intros H i. unfold bind. destruct (Nat.ltb_spec i n); auto. Qed.

  (* A tangent matters only where the program can name it. *)
  Lemma forward_ext p : forall n e t t', scoped p n e -> (forall i, i < n -> t i = t' i) ->
    forward p n e t = forward p n e t'.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; simpl; intros n e t t' Hs H.
    - eapply map_ext_below; eauto.
    - destruct Hs as [Ha Hk]. rewrite (map_ext_below t t' n args) by auto. apply IH; auto.
      intros. now apply bind_ext_below.
    - destruct Hs as [Hq Hk]. rewrite (IHq n e t t') by auto. apply IH; auto. intros. now apply bind_ext_below.
  Qed.
End Programs.
Arguments prog {R} P.
