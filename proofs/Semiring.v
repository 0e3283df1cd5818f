(* Commutative semirings, sums of products, and cells: the numbers that every file here computes with. *)
From Coq Require Export List Arith Lia Ring Ring_theory.
Export ListNotations.

Record semiring := {
  carrier :> Type;
  zero : carrier;
  one : carrier;
  add : carrier -> carrier -> carrier;
  mul : carrier -> carrier -> carrier;
  laws : semi_ring_theory zero one add mul eq }.
Arguments zero {_}. Arguments one {_}. Arguments add {_}. Arguments mul {_}. Arguments laws _ : assert.
Declare Scope semiring_scope.
Delimit Scope semiring_scope with R.
Notation "0" := zero : semiring_scope.
Notation "1" := one : semiring_scope.
Infix "+" := add : semiring_scope.
Infix "*" := mul : semiring_scope.

(* Values have names 0, 1, 2, ... in the order in which they are made. [bind n vs d e] names [vs] from [n] on. *)
Definition bind {A} (n : nat) (vs : list A) (d : A) (e : nat -> A) : nat -> A :=
  fun i => if i <? n then e i else nth (i - n) vs d.

Lemma bind_old {A} n vs (d : A) e i : i < n -> bind n vs d e i = e i.
Proof. intros H. unfold bind. now apply Nat.ltb_lt in H as ->. Qed.

Lemma bind_new {A} n vs (d : A) e j : bind n vs d e (n + j) = nth j vs d.
Proof. unfold bind. destruct (Nat.ltb_spec (n + j) n); [lia|]. f_equal. lia. Qed.

Lemma bind_at {A} n v vs (d : A) e : bind n (v :: vs) d e n = v.
Proof. rewrite <- (Nat.add_0_r n) at 2. now rewrite bind_new. Qed.

Lemma bind_map {A B} (f : A -> B) n vs d e i : f (bind n vs d e i) = bind n (map f vs) (f d) (fun i => f (e i)) i.
Proof. unfold bind. destruct (i <? n); auto. now rewrite map_nth. Qed.

Lemma bind_ext {A} n vs (d : A) e e' : (forall i, e i = e' i) -> forall i, bind n vs d e i = bind n vs d e' i.
Proof. intros H i. unfold bind. now rewrite H. Qed.

Lemma map_bind_seq {A} n vs (d : A) e : map (bind n vs d e) (seq n (length vs)) = vs.
Proof.
  revert n e. induction vs as [|v vs IH]; intros n e; simpl; auto. rewrite bind_at. f_equal.
  transitivity (map (bind (S n) vs d e) (seq (S n) (length vs))); auto. apply map_ext_in. intros i Hi. apply in_seq in Hi.
  unfold bind. destruct (Nat.ltb_spec i n), (Nat.ltb_spec i (S n)); try lia.
  replace (i - n) with (S (i - S n)) by lia. reflexivity.
Qed.

Section Sums.
  Context {R : semiring}.
  Add Ring R : (laws R).
  Local Open Scope R.

  (* The sum of [c i * t i] over the names below [n]. *)
  Fixpoint dot (n : nat) (c t : nat -> R) : R := match n with O => 0 | S m => dot m c t + c m * t m end.

  (* The sum of products of two lists, as far as both go. *)
  Fixpoint sum2 (ws ts : list R) : R :=
    match ws, ts with w :: ws, t :: ts => w * t + sum2 ws ts | _, _ => 0 end.

  Lemma dot_ext n c c' t t' :
    (forall i, i < n -> c i = c' i) -> (forall i, i < n -> t i = t' i) -> dot n c t = dot n c' t'.
  Proof. induction n; simpl; intros Hc Ht; auto. rewrite IHn, Hc, Ht; auto. Qed.

  Lemma sum2_nil ws : sum2 ws [] = 0.
  Proof. now destruct ws. Qed.

  Lemma sum2_add ws ts us : length ts = length us ->
    sum2 ws (map (fun '(t, u) => t + u) (combine ts us)) = sum2 ws ts + sum2 ws us.
  Proof.
    revert ts us. induction ws as [|w ws IH]; intros [|t ts] [|u us] H; simpl in *; try discriminate; try ring.
    injection H as H. rewrite IH by auto. ring.
  Qed.

  Lemma sum2_scale h ws ts : sum2 ws (map (mul h) ts) = h * sum2 ws ts.
  Proof. revert ts. induction ws; intros [|t ts]; simpl; rewrite ?IHws; ring. Qed.

  (* The unit vector of a name. *)
  Definition unit (a : nat) : nat -> R := fun i => if Nat.eqb i a then 1 else 0.

  Lemma dot_unit n c a : a < n -> dot n c (unit a) = c a.
  Proof.
    intros H. induction n; [lia|]. simpl. unfold unit at 2. destruct (Nat.eqb_spec n a) as [->|E].
    - cut (forall m, m <= a -> dot m c (unit a) = 0); [intros ->; auto; ring|].
      induction m; intros; simpl; auto. rewrite IHm by lia. unfold unit.
      destruct (Nat.eqb_spec m a); [lia|ring].
    - rewrite IHn by lia. ring.
  Qed.

  Lemma dot_bind n c t ts : dot (n + length ts) c (bind n ts 0 t) = dot n c t + sum2 (map c (seq n (length ts))) ts.
  Proof.
    revert n t. induction ts as [|x ts IH]; intros n t; simpl.
    - rewrite Nat.add_0_r. rewrite (dot_ext n c c _ t); auto; [ring|]. intros. now apply bind_old.
    - replace (n + S (length ts))%nat with (S n + length ts)%nat by lia.
      transitivity (dot (S n + length ts) c (bind (S n) ts 0 (bind n (x :: ts) 0 t))).
      { apply dot_ext; auto. intros i Hi. unfold bind. destruct (Nat.ltb_spec i (S n)); auto.
        destruct (Nat.ltb_spec i n); [lia|]. replace (i - n)%nat with (S (i - S n))%nat by lia. reflexivity. }
      rewrite IH. simpl. rewrite bind_at. rewrite (dot_ext n c c _ t); auto; [ring|]. intros. now apply bind_old.
  Qed.

  (* A cell collects one cotangent: [None] until something contributes. *)
  Definition cell := option R.
  Definition value_of (c : cell) : R := match c with Some x => x | None => 0 end.
  Definition plus (c : cell) (x : R) : cell := Some (match c with Some y => y + x | None => x end).
  Definition update {A} (a : nat) (x : A) (c : nat -> A) : nat -> A := fun i => if Nat.eqb i a then x else c i.
  Definition cells := nat -> cell.
  Definition accumulate (c : cells) (part : nat * R) : cells := update (fst part) (plus (c (fst part)) (snd part)) c.
  Definition total (n : nat) (c : cells) (t : nat -> R) : R := dot n (fun i => value_of (c i)) t.

  Lemma update_same {A} a (x : A) c : update a x c a = x.
  Proof. unfold update. now rewrite Nat.eqb_refl. Qed.
  Lemma update_other {A} a (x : A) c i : i <> a -> update a x c i = c i.
  Proof. intros H. unfold update. now destruct (Nat.eqb_spec i a). Qed.

  Lemma value_plus c x : value_of (plus c x) = value_of c + x.
  Proof. destruct c; simpl; ring. Qed.

  Lemma total_accumulate n c t a x : a < n -> total n (accumulate c (a, x)) t = total n c t + x * t a.
  Proof.
    intros H. unfold total, accumulate. cbn [fst snd]. induction n; [lia|]. cbn [dot]. destruct (Nat.eq_dec a n) as [->|E].
    - rewrite update_same, value_plus. rewrite (dot_ext n _ (fun i => value_of (c i)) t t); auto; [ring|].
      intros i Hi. now rewrite update_other by lia.
    - rewrite IHn by lia. rewrite update_other by lia. ring.
  Qed.

  (* Contributions to cells, one after the other. *)
  Definition accumulate_all (parts : list (nat * R)) (c : cells) : cells := fold_left accumulate parts c.

  Lemma total_accumulate_all n t parts : forall c, Forall (fun part => fst part < n) parts ->
    total n (accumulate_all parts c) t = total n c t + sum2 (map snd parts) (map t (map fst parts)).
  Proof.
    induction parts as [|[a x] parts IH]; intros c H; simpl; [ring|].
    inversion H; subst. rewrite IH by auto. rewrite total_accumulate by auto. ring.
  Qed.

  Lemma total_unit n c a : a < n -> total n c (unit a) = value_of (c a).
  Proof. apply (dot_unit n (fun i => value_of (c i))). Qed.

  Lemma total_ext n c c' t t' :
    (forall i, i < n -> c i = c' i) -> (forall i, i < n -> t i = t' i) -> total n c t = total n c' t'.
  Proof. intros Hc Ht. apply dot_ext; auto. intros i Hi. now rewrite Hc. Qed.

  Lemma total_bind n c t ts :
    total (n + length ts) c (bind n ts 0 t) = total n c t + sum2 (map value_of (map c (seq n (length ts)))) ts.
  Proof. unfold total. rewrite dot_bind, map_map. reflexivity. Qed.

  Lemma total_none n c t : (forall i, i < n -> c i = None) -> total n c t = 0.
  Proof. intros H. unfold total. induction n; simpl; auto. rewrite IHn, H by auto. simpl. ring. Qed.
End Sums.
