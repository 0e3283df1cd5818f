(* Nested derivatives without confusion: ownership.

   A traced value carries the activation that owns it. An operation goes to the innermost activation among its arguments
   (the one that began last, so the largest number); to it, every other argument is a constant. The theorem: values with
   owners are numbers of a tower of dual numbers with one infinitesimal for each activation, and every operation is the
   tower's. There, each derivative has a component of its own, so none can be taken for another. *)
From Effgrad Require Export SecondOrder.

Section Tower.
  Context {R : semiring} {P : signature R}.
  Local Notation Op := (op P).

  (* What a primitive and its rule are over some numbers. *)
  Record semantics := { numbers : semiring; ap : Op -> list numbers -> numbers; rules : Op -> list (expr numbers Op) }.
  Definition sig (s : semantics) : signature (numbers s) := Build_signature (numbers s) Op (ap s) (rules s).

  Definition with_duals (s : semantics) : semantics := {|
    numbers := dual (numbers s);
    ap := dual_apply (numbers s) (sig s);
    rules := fun o => map (lift (numbers s) (sig s)) (rules s o) |}.

  Fixpoint tower (k : nat) : semantics :=
    match k with O => Build_semantics R (apply P) (rule P) | S k => with_duals (tower k) end.

  Local Notation T k := (carrier (numbers (tower k))).

  Fixpoint inject (k : nat) (c : R) : T k := match k with O => c | S k => (inject k c, zero) end.

  Fixpoint relift {A : semiring} (f : R -> A) (e : expr R Op) : expr A Op :=
    match e with
    | Var i => Var i
    | Const c => Const (f c)
    | Add a b => Add (relift f a) (relift f b)
    | Mul a b => Mul (relift f a) (relift f b)
    | App o args => App o (map (relift f) args)
    end.

  Lemma rules_of_tower k o : rules (tower k) o = map (relift (inject k)) (rule P o).
  Proof.
    induction k.
    - cbn. rewrite <- (map_id (rule P o)) at 1. apply map_ext. intros e.
      induction e as [i|c|a b Ha Hb|a b Ha Hb|o' args IH] using expr_rect'; cbn; try congruence.
      f_equal. rewrite <- (map_id args) at 1. apply map_ext_in. now rewrite <- Forall_forall.
    - cbn. rewrite IHk, map_map. apply map_ext. intros e.
      induction e as [i|c|a b Ha Hb|a b Ha Hb|o' args IH] using expr_rect'; cbn.
      1, 2: reflexivity.
      1: exact (f_equal2 (@Add (dual (numbers (tower k))) Op) Ha Hb).
      1: exact (f_equal2 (@Mul (dual (numbers (tower k))) Op) Ha Hb).
      refine (f_equal (@App (dual (numbers (tower k))) Op o') _). rewrite map_map. apply map_ext_in.
      now rewrite <- Forall_forall.
  Qed.

  (* A value, as Python has it: a number, or the primal and the tangent of an activation. *)
  Inductive value :=
    | Plain (r : R)
    | Traced (owner : nat) (primal tangent : value).

  (* Owners are below [k], and what an activation holds was made by those that began before it. *)
  Fixpoint below (k : nat) (v : value) : Prop :=
    match v with Plain _ => True | Traced m p t => m < k /\ below m p /\ below m t end.

  Definition owns (k : nat) (v : value) : bool := match v with Plain _ => false | Traced m _ _ => m =? k end.
  Definition primal (k : nat) (v : value) : value :=
    match v with Traced m p _ => if m =? k then p else v | Plain _ => v end.
  Definition tangent (k : nat) (v : value) : value :=
    match v with Traced m _ t => if m =? k then t else Plain zero | Plain _ => Plain zero end.
  Definition number (v : value) : R := match v with Plain r => r | Traced _ _ _ => zero end.

  (* Sums and products: the innermost owner among the two answers, by its rule, in the handlers below. *)
  Fixpoint plus (k : nat) (a b : value) : value :=
    match k with
    | O => Plain (add (number a) (number b))
    | S k =>
        if orb (owns k a) (owns k b)
        then Traced k (plus k (primal k a) (primal k b)) (plus k (tangent k a) (tangent k b))
        else plus k a b
    end.

  Fixpoint times (k : nat) (a b : value) : value :=
    match k with
    | O => Plain (mul (number a) (number b))
    | S k =>
        if orb (owns k a) (owns k b)
        then Traced k (times k (primal k a) (primal k b))
          (plus k (times k (tangent k a) (primal k b)) (times k (primal k a) (tangent k b)))
        else times k a b
    end.

  Fixpoint rule_value (plus times : value -> value -> value) (perform : Op -> list value -> value) (xs : list value)
    (e : expr R Op) : value :=
    match e with
    | Var i => nth i xs (Plain zero)
    | Const c => Plain c
    | Add a b => plus (rule_value plus times perform xs a) (rule_value plus times perform xs b)
    | Mul a b => times (rule_value plus times perform xs a) (rule_value plus times perform xs b)
    | App o args => perform o (map (rule_value plus times perform xs) args)
    end.

  (* A primitive: as [apply] of forward mode, reached through [perform]. *)
  Fixpoint perform (k : nat) (o : Op) (args : list value) : value :=
    match k with
    | O => Plain (apply P o (map number args))
    | S k =>
        if existsb (owns k) args
        then
          let primals := map (primal k) args in
          Traced k (perform k o primals)
            (fold_right (fun '(r, t) sum => plus k (times k (rule_value (plus k) (times k) (perform k) primals r) t) sum)
              (Plain zero) (combine (rule P o) (map (tangent k) args)))
        else perform k o args
    end.

  (* What a value means. *)
  Fixpoint sem (k : nat) (v : value) : T k :=
    match k with
    | O => number v
    | S k => (sem k (primal k v), sem k (tangent k v))
    end.

  Lemma sem_plain k c : sem k (Plain c) = inject k c.
  Proof.
    revert c. induction k; intros c; cbn; auto. rewrite !IHk. f_equal. clear. induction k; cbn; auto. now rewrite IHk.
  Qed.

  Lemma inject_zero k : inject k zero = zero.
  Proof. induction k; cbn; auto. now rewrite IHk. Qed.

  Lemma below_primal k v : below (S k) v -> below k (primal k v).
  Proof.
    destruct v as [r|m p t]; cbn; auto. intros (L & Hp & Ht). destruct (Nat.eqb_spec m k) as [->|]; auto.
    cbn. repeat split; auto; lia.
  Qed.

  Lemma below_tangent k v : below (S k) v -> below k (tangent k v).
  Proof. destruct v as [r|m p t]; cbn; auto. intros (L & Hp & Ht). destruct (Nat.eqb_spec m k) as [->|]; cbn; auto. Qed.

  Lemma below_more k v : below k v -> below (S k) v.
  Proof. destruct v; cbn; auto. intros (? & ? & ?). repeat split; auto. Qed.

  Lemma not_owned k v : owns k v = false -> primal k v = v /\ tangent k v = Plain zero.
  Proof. destruct v as [r|m p t]; cbn; auto. intros ->. auto. Qed.

  Lemma owned_below k v : owns k v = false -> below (S k) v -> below k v.
  Proof. intros H B. apply below_primal in B. now destruct (not_owned k v H) as [<- _]. Qed.

  Lemma primal_owned k p t : primal k (Traced k p t) = p.
  Proof. cbn. now rewrite Nat.eqb_refl. Qed.
  Lemma tangent_owned k p t : tangent k (Traced k p t) = t.
  Proof. cbn. now rewrite Nat.eqb_refl. Qed.

  Lemma sem_below k v : below k v -> primal k v = v /\ tangent k v = Plain zero.
  Proof. destruct v as [r|m p t]; cbn; auto. intros (L & _). destruct (Nat.eqb_spec m k); auto. lia. Qed.

  Theorem plus_is_the_towers k : forall a b, below k a -> below k b ->
    below k (plus k a b) /\ sem k (plus k a b) = add (sem k a) (sem k b).
  Proof.
    induction k; intros a b Ha Hb; [now split|]. cbn [plus].
    destruct (orb (owns k a) (owns k b)) eqn:E.
    - destruct (IHk (primal k a) (primal k b)) as [Bp Sp]; auto using below_primal.
      destruct (IHk (tangent k a) (tangent k b)) as [Bt St]; auto using below_tangent.
      split; [cbn; repeat split; auto|]. cbn [sem]. rewrite primal_owned, tangent_owned, Sp, St. reflexivity.
    - apply Bool.orb_false_elim in E as [Ea Eb]. destruct (IHk a b) as [B Sv]; eauto using owned_below.
      split; [now apply below_more|]. cbn [sem]. destruct (sem_below k _ B) as [-> ->].
      destruct (not_owned k a Ea) as [-> ->], (not_owned k b Eb) as [-> ->]. rewrite Sv, !sem_plain, inject_zero. cbn.
      f_equal. symmetry. apply (laws (numbers (tower k))).
  Qed.

  Theorem times_is_the_towers k : forall a b, below k a -> below k b ->
    below k (times k a b) /\ sem k (times k a b) = mul (sem k a) (sem k b).
  Proof.
    induction k; intros a b Ha Hb; [now split|]. cbn [times].
    destruct (orb (owns k a) (owns k b)) eqn:E.
    - destruct (IHk (primal k a) (primal k b)) as [Bp Sp]; auto using below_primal.
      destruct (IHk (tangent k a) (primal k b)) as [B1 S1]; auto using below_primal, below_tangent.
      destruct (IHk (primal k a) (tangent k b)) as [B2 S2]; auto using below_primal, below_tangent.
      destruct (plus_is_the_towers k _ _ B1 B2) as [Bt St].
      split; [cbn; repeat split; auto|]. cbn [sem]. rewrite primal_owned, tangent_owned, Sp, St, S1, S2. reflexivity.
    - apply Bool.orb_false_elim in E as [Ea Eb]. destruct (IHk a b) as [B Sv]; eauto using owned_below.
      split; [now apply below_more|]. cbn [sem]. destruct (sem_below k _ B) as [-> ->].
      destruct (not_owned k a Ea) as [-> ->], (not_owned k b Eb) as [-> ->]. rewrite Sv, !sem_plain, inject_zero. cbn.
      f_equal. pose proof (laws (numbers (tower k))) as L. destruct L.
      rewrite (SRmul_comm (sem k a) zero), !SRmul_0_l, SRadd_0_l. reflexivity.
  Qed.

  Lemma rule_value_is_the_towers k xs e :
    (forall o args, Forall (below k) args ->
       below k (perform k o args) /\ sem k (perform k o args) = ap (tower k) o (map (sem k) args)) ->
    Forall (below k) xs ->
    let v := rule_value (plus k) (times k) (perform k) xs e in
    below k v /\ sem k v = eval (P := sig (tower k)) (fun i => nth i (map (sem k) xs) zero) (relift (inject k) e).
  Proof.
    intros Hp Hx. cbn zeta. induction e as [i|c|a b [Ba Sa] [Bb Sb]|a b [Ba Sa] [Bb Sb]|o args IH] using expr_rect'; cbn.
    - rewrite <- inject_zero, <- sem_plain, map_nth. split; auto. rewrite Forall_forall in Hx.
      destruct (nth_in_or_default i xs (Plain zero)) as [I| ->]; [auto|exact I].
    - split; [exact I|]. apply sem_plain.
    - destruct (plus_is_the_towers k _ _ Ba Bb). split; congruence.
    - destruct (times_is_the_towers k _ _ Ba Bb). split; congruence.
    - rewrite Forall_forall in IH. destruct (Hp o (map (rule_value (plus k) (times k) (perform k) xs) args)) as [B Sv].
      + apply Forall_forall. intros v Hv. apply in_map_iff in Hv as [a [<- Ia]]. now apply IH.
      + split; auto. rewrite Sv, !map_map. f_equal. apply map_ext_in. intros a Ia. now apply IH.
  Qed.

  Lemma sum2_zeros {A : semiring} (ws : list A) ts : Forall (fun t => t = zero) ts -> sum2 ws ts = zero.
  Proof.
    revert ts. induction ws as [|w ws IH]; intros [|t ts] H; cbn; auto. inversion H; subst. rewrite IH by auto.
    destruct (laws A). rewrite (SRmul_comm w zero), SRmul_0_l, SRadd_0_l. reflexivity.
  Qed.

  Theorem ownership k : forall o args, Forall (below k) args ->
    below k (perform k o args) /\ sem k (perform k o args) = ap (tower k) o (map (sem k) args).
  Proof.
    induction k; intros o args H; [split; auto; cbn; exact I|]. cbn [perform].
    destruct (existsb (owns k) args) eqn:E.
    - assert (Forall (below k) (map (primal k) args)) as Hp by
        (apply Forall_map; eapply Forall_impl; [|exact H]; auto using below_primal).
      assert (Forall (below k) (map (tangent k) args)) as Ht by
        (apply Forall_map; eapply Forall_impl; [|exact H]; auto using below_tangent).
      destruct (IHk o _ Hp) as [B Sv].
      match goal with |- context [Traced k _ ?t] => set (sum := t) end.
      assert (below k sum /\ sem k sum = sum2
        (map (eval (P := sig (tower k)) (fun i => nth i (map (sem k) (map (primal k) args)) zero)) (rules (tower k) o))
        (map (sem k) (map (tangent k) args))) as [Bs Ss].
      { rewrite rules_of_tower. unfold sum. clear - IHk Hp Ht. revert Ht. generalize (map (tangent k) args) as ts.
        induction (rule P o) as [|r rs IH]; intros [|t ts] Ht; cbn [combine fold_right map sum2];
          try (split; [exact I|]; now rewrite sem_plain, inject_zero).
        inversion Ht; subst. destruct (IH ts) as [B Sv]; auto.
        destruct (rule_value_is_the_towers k (map (primal k) args) r IHk Hp) as [Br Sr].
        destruct (times_is_the_towers k _ t Br) as [Bm Sm]; auto.
        destruct (plus_is_the_towers k _ _ Bm B) as [Bq Sq]. split; auto. rewrite Sq, Sm, Sr, Sv. reflexivity. }
      split; [cbn; repeat split; auto|]. cbn [sem]. rewrite primal_owned, tangent_owned, Sv, Ss. cbn. unfold dual_apply.
      rewrite !map_map. reflexivity.
    - assert (forall a, In a args -> owns k a = false) as N.
      { intros a Ia. destruct (owns k a) eqn:F; auto. assert (existsb (owns k) args = true) by
          (apply existsb_exists; now exists a). congruence. }
      assert (Forall (below k) args) as H'.
      { rewrite Forall_forall in *. intros a Ia. apply owned_below; auto. }
      destruct (IHk o args H') as [B Sv]. split; [now apply below_more|]. cbn [sem].
      destruct (sem_below k _ B) as [-> ->]. rewrite Sv, sem_plain, inject_zero. cbn. unfold dual_apply. rewrite !map_map.
      f_equal; [refine (f_equal (ap (tower k) o) _); apply map_ext_in; intros a Ia; cbn; now destruct (not_owned k a (N a Ia)) as [-> _]|].
      unfold push. symmetry. apply sum2_zeros. apply Forall_forall. intros t Hx. apply in_map_iff in Hx as [a [<- Ia]].
      cbn. destruct (not_owned k a (N a Ia)) as [_ ->]. now rewrite sem_plain, inject_zero.
  Qed.

  (* So an operation's derivative for activation [k] is that of its own infinitesimal, with all others kept. *)
  Corollary no_confusion k o args : Forall (below (S k)) args ->
    snd (sem (S k) (perform (S k) o args)) =
    push (P := sig (tower k)) o (map (fun a => sem k (primal k a)) args) (map (fun a => sem k (tangent k a)) args).
  Proof.
    intros H. destruct (ownership (S k) o args H) as [_ ->]. cbn. unfold dual_apply. rewrite !map_map. reflexivity.
  Qed.
End Tower.
