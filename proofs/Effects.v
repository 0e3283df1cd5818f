(* The effects of a derivative, and their number.

   Here the operations of the dictionary are effects, performed in the handler below: a derivative is a tree of requests,
   each with the rest of the derivative as a function of the answer. A request outside of this type cannot be made, so
   the effects of the dictionary's operations are all that comes out; the theorems say in which order, and how many. *)
From Effgrad Require Export Reverse.
From Effgrad Require Continuation.

Section Effects.
  Context {R : semiring} {P : signature R}.
  Local Open Scope R.
  Local Notation cell := (@cell R).
  Local Notation cells := (@cells R).
  Implicit Types (n made : nat) (e t : nat -> R) (shadow : nat -> nat) (c : cells).

  Inductive request :=
    | Apply (o : op P) (xs : list R)
    | Partial (o : op P) (index : nat) (xs : list R)
    | Sum (a b : R)
    | Product (a b : R).

  Inductive tree (A : Type) := Pure (a : A) | Perform (r : request) (k : R -> tree A).
  Arguments Pure {A}. Arguments Perform {A}.

  Fixpoint andthen {A B} (m : tree A) (f : A -> tree B) : tree B :=
    match m with Pure a => f a | Perform r k => Perform r (fun x => andthen (k x) f) end.
  Notation "x <- m ;; f" := (andthen m (fun x => f)) (at level 61, m at next level, right associativity).
  Notation "x <! r ;; f" := (Perform r (fun x => f)) (at level 61, r at next level, right associativity).

  (* The handler below that answers as the semiring and the primitives do. *)
  Definition answer (r : request) : R :=
    match r with
    | Apply o xs => apply P o xs
    | Partial o j xs => nth j (partials o xs) 0
    | Sum a b => a + b
    | Product a b => a * b
    end.

  Fixpoint result {A} (m : tree A) : A := match m with Pure a => a | Perform r k => result (k (answer r)) end.
  Fixpoint requests {A} (m : tree A) : list request :=
    match m with Pure _ => [] | Perform r k => r :: requests (k (answer r)) end.

  Lemma result_andthen {A B} (m : tree A) (f : A -> tree B) : result (andthen m f) = result (f (result m)).
  Proof. induction m; simpl; auto. Qed.
  Lemma requests_andthen {A B} (m : tree A) (f : A -> tree B) :
    requests (andthen m f) = requests m ++ requests (f (result m)).
  Proof. induction m; simpl; auto. now rewrite H. Qed.

  (* Evaluation. *)
  Fixpoint evaluating (p : prog P) n e : tree (list R) :=
    match p with
    | Ret ys => Pure (map e ys)
    | Do o args k => v <! Apply o (map e args);; evaluating (k v) (n + 1) (bind n [v] 0 e)
    | Ck q k => vs <- evaluating q n e;; evaluating (k vs) (n + length vs) (bind n vs 0 e)
    end.

  (* Forward mode. *)
  Fixpoint pushing (o : op P) (xs ts : list R) (j : nat) : tree R :=
    match ts with
    | [] => Pure 0
    | t :: ts =>
        if j <? length (rule P o)
        then p <! Partial o j xs;; x <! Product p t;; rest <- pushing o xs ts (S j);; Perform (Sum x rest) Pure
        else Pure 0
    end.

  Fixpoint forwarding (p : prog P) n e t : tree (list R * list R) :=
    match p with
    | Ret ys => Pure (map e ys, map t ys)
    | Do o args k =>
        let xs := map e args in
        v <! Apply o xs;; x <- pushing o xs (map t args) 0;;
        forwarding (k v) (n + 1) (bind n [v] 0 e) (bind n [x] 0 t)
    | Ck q k =>
        both <- forwarding q n e t;;
        forwarding (k (fst both)) (n + length (fst both)) (bind n (fst both) 0 e) (bind n (snd both) 0 t)
    end.

  (* Stateful reverse mode. *)
  Definition adding (c : cells) (a : nat) (x : R) : tree cells :=
    match c a with None => Pure (update a (Some x) c) | Some w => y <! Sum w x;; Pure (update a (Some y) c) end.

  Fixpoint passing (o : op P) (xs : list R) (g : R) (targets : list nat) (j : nat) c : tree cells :=
    match targets with
    | [] => Pure c
    | a :: targets =>
        if j <? length (rule P o)
        then p <! Partial o j xs;; x <! Product g p;; c <- adding c a x;; passing o xs g targets (S j) c
        else Pure c
    end.

  Fixpoint seeding (outs : list nat) (ws : list cell) c : tree cells :=
    match outs, ws with
    | a :: outs, Some x :: ws => c <- adding c a x;; seeding outs ws c
    | a :: outs, None :: ws => seeding outs ws c
    | _, _ => Pure c
    end.

  Fixpoint reversing (again : bool) (p : prog P) n e shadow (made : nat)
    (finish : list R -> list nat -> nat -> cells -> tree cells) c {struct p} : tree cells :=
    match p with
    | Ret ys => finish (map e ys) (map shadow ys) made c
    | Do o args k =>
        let xs := map e args in
        v <! Apply o xs;;
        c <- reversing again (k v) (n + 1) (bind n [v] 0 e) (bind n [made] 0%nat shadow) (made + 1) finish (clear made c);;
        match c made with None => Pure c | Some g => passing o xs g (map shadow args) 0 c end
    | Ck q k =>
        if again then
          vs <- evaluating q n e;;
          let outs := seq made (length vs) in
          c <- reversing again (k vs) (n + length vs) (bind n vs 0 e) (bind n outs 0%nat shadow) (made + length vs)
            finish (clear made c);;
          let given := map c outs in
          if none given then Pure c else reversing again q n e shadow made (fun _ outs _ => seeding outs given) c
        else
          reversing again q n e shadow made (fun vs outs made =>
            reversing again (k vs) (n + length vs) (bind n vs 0 e) (bind n outs 0%nat shadow) made finish) c
    end.

  (* Answered by the semiring, these are the modes of the other files. *)
  Lemma result_evaluating p : forall n e, result (evaluating p n e) = values p n e.
  Proof. induction p; intros; simpl; auto. now rewrite result_andthen, IHp. Qed.

  Lemma length_partials o (xs : list R) : length (partials (P := P) o xs) = length (rule P o).
  Proof. apply map_length. Qed.

  Lemma result_pushing o xs ts : forall j, result (pushing o xs ts j) = sum2 (skipn j (partials o xs)) ts.
  Proof.
    induction ts as [|t ts IH]; intros j; simpl; [now rewrite sum2_nil|]. rewrite <- (length_partials o xs).
    destruct (Nat.ltb_spec j (length (partials o xs))) as [L|L].
    - simpl. rewrite result_andthen. simpl. rewrite IH. generalize dependent j. generalize (partials o xs) as ps.
      induction ps as [|p ps IHp]; intros [|j] L; simpl in *; try lia; auto. apply IHp. lia.
    - now rewrite skipn_all2.
  Qed.

  Theorem result_forwarding p : forall n e t, result (forwarding p n e t) = (values p n e, forward p n e t).
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e t; simpl; auto.
    - rewrite result_andthen, IH, result_pushing. reflexivity.
    - rewrite result_andthen, IHq. simpl. apply IH.
  Qed.

  Lemma result_adding c a x : result (adding c a x) = accumulate c (a, x).
  Proof. unfold adding, accumulate, Semiring.plus. simpl. now destruct (c a). Qed.

  Lemma result_passing o xs g targets : forall j c,
    result (passing o xs g targets j c) = accumulate_all (map (fun '(a, p) => (a, g * p)) (combine targets (skipn j (partials o xs)))) c.
  Proof.
    induction targets as [|a targets IH]; intros j c; simpl; auto. rewrite <- (length_partials o xs).
    destruct (Nat.ltb_spec j (length (partials o xs))) as [L|L].
    - simpl. rewrite result_andthen, IH, result_adding.
      assert (skipn j (partials o xs) = nth j (partials o xs) 0 :: skipn (S j) (partials o xs)) as ->; auto.
      generalize dependent j. generalize (partials o xs) as ps.
      induction ps as [|p ps IHp]; intros [|j] L; simpl in *; try lia; auto. rewrite IHp by lia. reflexivity.
    - rewrite skipn_all2 by auto. reflexivity.
  Qed.

  Lemma result_seeding outs : forall ws c, result (seeding outs ws c) = seed outs ws c.
  Proof.
    unfold seed. induction outs as [|a outs IH]; intros [|[w|] ws] c; simpl; auto.
    now rewrite result_andthen, IH, result_adding.
  Qed.

  Theorem result_reversing again p : forall n e shadow made finish finish' c,
    (forall vs outs made c, result (finish vs outs made c) = finish' vs outs made c) ->
    result (reversing again p n e shadow made finish c) = reverse again p n e shadow made finish' c.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e shadow made finish finish' c F; simpl; auto.
    - rewrite result_andthen, (IH _ _ _ _ _ finish finish') by auto. destruct (reverse _ _ _ _ _ _ _ _ made); auto.
      apply result_passing.
    - destruct again.
      + rewrite result_andthen, result_evaluating, result_andthen, (IH _ _ _ _ _ finish finish') by auto.
        destruct (none _); auto. apply IHq. intros. apply result_seeding.
      + apply IHq. intros. now apply IH.
  Qed.

  (* The program's own operations, in its order. *)
  Fixpoint operations (p : prog P) n e : list request :=
    match p with
    | Ret _ => []
    | Do o args k => let v := apply P o (map e args) in Apply o (map e args) :: operations (k v) (n + 1) (bind n [v] 0 e)
    | Ck q k => let vs := values q n e in operations q n e ++ operations (k vs) (n + length vs) (bind n vs 0 e)
    end.

  Theorem evaluation_in_order p : forall n e, requests (evaluating p n e) = operations p n e.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e; simpl; auto; [now rewrite IH|].
    now rewrite requests_andthen, IHq, result_evaluating, IH.
  Qed.

  Definition is_apply (r : request) : bool := match r with Apply _ _ => true | _ => false end.

  Lemma no_apply_pushing o xs ts : forall j, filter is_apply (requests (pushing o xs ts j)) = [].
  Proof.
    induction ts as [|t ts IH]; intros j; simpl; auto. destruct (j <? _); simpl; auto.
    now rewrite requests_andthen, filter_app, IH.
  Qed.

  Theorem forward_in_order p : forall n e t, filter is_apply (requests (forwarding p n e t)) = operations p n e.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e t; simpl; auto.
    - now rewrite requests_andthen, filter_app, no_apply_pushing, IH.
    - rewrite requests_andthen, filter_app, IHq, result_forwarding. simpl. now rewrite IH.
  Qed.

  Lemma no_apply_adding c a x : filter is_apply (requests (adding c a x)) = [].
  Proof. unfold adding. now destruct (c a). Qed.

  Lemma no_apply_passing o xs g targets : forall j c, filter is_apply (requests (passing o xs g targets j c)) = [].
  Proof.
    induction targets as [|a targets IH]; intros j c; simpl; auto. destruct (j <? _); simpl; auto.
    now rewrite requests_andthen, filter_app, no_apply_adding, IH.
  Qed.

  (* First the program's operations, in its order; then what becomes of the results; then the reverse pass, which
     applies no primitive unless a checkpoint runs again. *)
  Theorem reverse_in_order again p : forall n e shadow made finish c,
    exists outs made' c' back,
      requests (reversing again p n e shadow made finish c) =
        operations p n e ++ requests (finish (values p n e) outs made' c') ++ back /\
      (again = false -> filter is_apply back = []).
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e shadow made finish c; cbn [reversing operations values].
    - exists (map shadow ys), made, c, []. now rewrite app_nil_r.
    - cbn [requests answer]. rewrite requests_andthen. set (v := apply P o (map e args)).
      destruct (IH v (n + 1)%nat (bind n [v] 0 e) (bind n [made] 0%nat shadow) (made + 1)%nat finish (clear made c))
        as (outs & made' & c' & back & E & N).
      rewrite E. exists outs, made', c'. eexists. split; [simpl; rewrite <- !app_assoc; reflexivity|].
      intros H. rewrite filter_app, N by auto. set (c'' := result _). destruct (c'' made); auto. apply no_apply_passing.
    - destruct again.
      + rewrite requests_andthen, evaluation_in_order, result_evaluating. cbn zeta. rewrite requests_andthen.
        set (vs := values q n e). set (outs0 := seq made (length vs)).
        destruct (IH vs (n + length vs)%nat (bind n vs 0 e) (bind n outs0 0%nat shadow) (made + length vs)%nat finish (clear made c))
          as (outs & made' & c' & back & E & N).
        rewrite E. exists outs, made', c'. eexists. split; [rewrite <- !app_assoc; reflexivity|discriminate].
      + match goal with |- context [reversing false q n e shadow made ?f c] =>
          destruct (IHq n e shadow made f c) as (outs1 & made1 & c1 & back1 & E1 & N1) end.
        set (vs := values q n e) in *.
        destruct (IH vs (n + length vs)%nat (bind n vs 0 e) (bind n outs1 0%nat shadow) made1 finish c1)
          as (outs & made' & c' & back & E & N).
        rewrite E1, E. exists outs, made', c', (back ++ back1). split; [now rewrite <- !app_assoc|].
        intros H. now rewrite filter_app, N, N1.
  Qed.

  (* The number of requests. *)
  Lemma count_adding c a x : length (requests (adding c a x)) <= 1.
  Proof. unfold adding. destruct (c a); simpl; lia. Qed.

  Lemma count_passing o xs g targets : forall j c, length (requests (passing o xs g targets j c)) <= 3 * length targets.
  Proof.
    induction targets as [|a targets IH]; intros j c; simpl; [lia|]. destruct (j <? _); simpl; [|lia].
    rewrite requests_andthen, app_length. pose proof (count_adding c a (g * nth j (partials o xs) 0)).
    specialize (IH (S j) (result (adding c a (g * nth j (partials o xs) 0)))). lia.
  Qed.

  Lemma count_pushing o xs ts : forall j, length (requests (pushing o xs ts j)) <= 3 * length ts.
  Proof.
    induction ts as [|t ts IH]; intros j; simpl; [lia|]. destruct (j <? _); simpl; [|lia].
    rewrite requests_andthen, app_length. specialize (IH (S j)). simpl. lia.
  Qed.

  Lemma count_seeding outs : forall ws c, length (requests (seeding outs ws c)) <= length outs.
  Proof.
    induction outs as [|a outs IH]; intros [|[w|] ws] c; simpl; try lia.
    - rewrite requests_andthen, app_length. pose proof (count_adding c a w). specialize (IH ws (result (adding c a w))). lia.
    - specialize (IH ws c). lia.
  Qed.

  (* Operations, checkpoints and their results, and how deep checkpoints nest, along the path. *)
  Fixpoint size (p : prog P) n e : nat :=
    match p with
    | Ret _ => 0
    | Do o args k => let v := apply P o (map e args) in S (size (k v) (n + 1) (bind n [v] 0 e))
    | Ck q k => let vs := values q n e in S (length vs) + size q n e + size (k vs) (n + length vs) (bind n vs 0 e)
    end.

  Fixpoint depth (p : prog P) n e : nat :=
    match p with
    | Ret _ => 0
    | Do o args k => let v := apply P o (map e args) in depth (k v) (n + 1) (bind n [v] 0 e)
    | Ck q k => let vs := values q n e in Nat.max (S (depth q n e)) (depth (k vs) (n + length vs) (bind n vs 0 e))
    end.

  Fixpoint arguments_at_most (m : nat) (p : prog P) n e : Prop :=
    match p with
    | Ret _ => True
    | Do o args k => length args <= m /\ (let v := apply P o (map e args) in arguments_at_most m (k v) (n + 1) (bind n [v] 0 e))
    | Ck q k => arguments_at_most m q n e /\ (let vs := values q n e in arguments_at_most m (k vs) (n + length vs) (bind n vs 0 e))
    end.

  Theorem forward_is_linear m p : forall n e t, arguments_at_most m p n e ->
    length (requests (forwarding p n e t)) <= (1 + 3 * m) * size p n e.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e t H; cbn [forwarding arguments_at_most size] in *; simpl requests.
    - simpl. lia.
    - destruct H as [L H]. rewrite requests_andthen. simpl length. rewrite app_length.
      pose proof (count_pushing o (map e args) (map t args) 0). rewrite map_length in *.
      specialize (IH _ _ _ (bind n [result (pushing o (map e args) (map t args) 0)] 0 t) H). nia.
    - destruct H as [Hq H]. rewrite requests_andthen, app_length, result_forwarding. simpl fst. simpl snd.
      specialize (IHq n e t Hq). specialize (IH _ _ _ (bind n (forward q n e t) 0 t) H). nia.
  Qed.

  Lemma operations_few p : forall n e, length (operations p n e) <= size p n e.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e; cbn [operations size]; simpl; [lia| |].
    - specialize (IH (apply P o (map e args)) (n + 1)%nat (bind n [apply P o (map e args)] 0 e)). lia.
    - rewrite app_length. specialize (IHq n e). specialize (IH (values q n e) (n + length (values q n e))%nat (bind n (values q n e) 0 e)). lia.
  Qed.

  Lemma reverse_count m again p : forall n e shadow made finish c s, arguments_at_most m p n e ->
    (forall outs made c, length outs = length (values p n e) -> length (requests (finish (values p n e) outs made c)) <= s) ->
    length (requests (reversing again p n e shadow made finish c)) <= (1 + 3 * m) * (1 + depth p n e) * size p n e + s.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e shadow made finish c s H F;
      cbn [reversing arguments_at_most size depth values] in *; simpl requests.
    - simpl. rewrite Nat.mul_0_r. apply F. now rewrite !map_length.
    - destruct H as [L H]. set (v := apply P o (map e args)) in *. rewrite requests_andthen. simpl length. rewrite app_length.
      pose proof (IH v (n + 1)%nat (bind n [v] 0 e) (bind n [made] 0%nat shadow) (made + 1)%nat finish (clear made c) s H F) as C.
      set (c' := result (reversing _ _ _ _ _ _ _ _)) in *.
      assert (length (requests (match c' made with None => Pure c' | Some g => passing o (map e args) g (map shadow args) 0 c' end))
        <= 3 * m) as C2.
      { destruct (c' made) as [g|]; simpl; [|lia].
        pose proof (count_passing o (map e args) g (map shadow args) 0 c'). rewrite map_length in *. lia. }
      set (b := (1 + 3 * m)%nat) in *.
      set (d := depth _ _ _) in *. set (z := size _ _ _) in *. rewrite Nat.mul_succ_r.
      assert (b * 1 <= b * (1 + d))%nat by (apply Nat.mul_le_mono_l; lia). unfold b in *. lia.
    - destruct H as [Hq H]. set (vs := values q n e) in *. destruct again.
      + rewrite requests_andthen, evaluation_in_order, result_evaluating, app_length. fold vs. cbn zeta.
        rewrite requests_andthen, app_length.
        pose proof (IH vs (n + length vs)%nat (bind n vs 0 e) (bind n (seq made (length vs)) 0%nat shadow) (made + length vs)%nat
          finish (clear made c) s H F) as C.
        set (c' := result (reversing _ _ _ _ _ _ _ _)) in *. pose proof (operations_few q n e) as C0.
        assert (length (requests (if none (map c' (seq made (length vs))) then Pure c' else
          reversing true q n e shadow made (fun _ outs _ => seeding outs (map c' (seq made (length vs)))) c'))
          <= (1 + 3 * m) * (1 + depth q n e) * size q n e + length vs) as C2.
        { destruct (none _); [simpl; lia|]. apply IHq; auto. intros outs made' c'' E. unfold vs. rewrite <- E. apply count_seeding. }
        set (dk := depth (k vs) _ _) in *. set (zk := size (k vs) _ _) in *. set (dq := depth q n e) in *. set (zq := size q n e) in *.
        set (b := (1 + 3 * m)%nat) in *. assert (1 <= b)%nat by (unfold b; lia).
        set (top := (b * (1 + Nat.max (S dq) dk))%nat) in *.
        assert (b * (1 + dk) * zk <= top * zk)%nat by (apply Nat.mul_le_mono_r, Nat.mul_le_mono_l; lia).
        assert ((b * (1 + dq) + b) * zq <= top * zq)%nat as T by
          (apply Nat.mul_le_mono_r; unfold top; rewrite <- (Nat.mul_1_r b) at 2; rewrite <- Nat.mul_add_distr_l;
           apply Nat.mul_le_mono_l; lia).
        assert (1 * zq <= b * zq)%nat by now apply Nat.mul_le_mono_r.
        assert (1 * length vs <= top * length vs)%nat by
          (apply Nat.mul_le_mono_r; unfold top; rewrite <- (Nat.mul_1_l 1); apply Nat.mul_le_mono; lia).
        rewrite Nat.mul_add_distr_r in T. rewrite !Nat.mul_add_distr_l. clearbody top b. lia.
      + pose proof (IHq n e shadow made (fun vs outs made => reversing false (k vs) (n + length vs) (bind n vs 0 e)
          (bind n outs 0%nat shadow) made finish) c
          ((1 + 3 * m) * (1 + depth (k vs) (n + length vs) (bind n vs zero e)) * size (k vs) (n + length vs) (bind n vs zero e) + s)%nat Hq) as C.
        assert (forall outs made c, length outs = length (values q n e) ->
          length (requests (reversing false (k vs) (n + length vs) (bind n vs 0 e) (bind n outs 0%nat shadow) made finish c))
          <= (1 + 3 * m) * (1 + depth (k vs) (n + length vs) (bind n vs 0 e)) * size (k vs) (n + length vs) (bind n vs 0 e) + s) as C1
          by (intros; now apply IH).
        specialize (C C1).
        set (dk := depth (k vs) _ _) in *. set (zk := size (k vs) _ _) in *. set (dq := depth q n e) in *. set (zq := size q n e) in *.
        set (b := (1 + 3 * m)%nat) in *.
        set (top := (b * (1 + Nat.max (S dq) dk))%nat) in *.
        assert (b * (1 + dk) * zk <= top * zk)%nat by (apply Nat.mul_le_mono_r, Nat.mul_le_mono_l; lia).
        assert (b * (1 + dq) * zq <= top * zq)%nat by (apply Nat.mul_le_mono_r, Nat.mul_le_mono_l; lia).
        rewrite !Nat.mul_add_distr_l. clearbody top b. lia.
  Qed.

  (* A whole derivative of a program with [w] results: linear in its size, with one more factor for each level of
     checkpoints, recorded or run again. *)
  Theorem reverse_is_linear m again p n x ws : arguments_at_most m p n x ->
    length (requests (reversing again p n x (fun i => i) n (fun _ outs _ => seeding outs (map Some ws)) empty))
    <= (1 + 3 * m) * (1 + depth p n x) * size p n x + length (values p n x).
  Proof. intros H. apply reverse_count; auto. intros outs made c E. rewrite <- E. apply count_seeding. Qed.

  Theorem reversing_is_pullback again p n x ws :
    result (reversing again p n x (fun i => i) n (fun _ outs _ => seeding outs (map Some ws)) empty) = pullback again p n x ws.
  Proof. apply result_reversing. intros. apply result_seeding. Qed.

  (* Continuation mode makes, and calls at most once each, as many backpropagators; a tape has as many entries. *)
  Lemma made_few p : forall n e shadow made,
    length (fst (Continuation.record p n e shadow made)) <= size p n e /\
    length (fst (Continuation.record p n e shadow made)) + Continuation.remade p n e <= (1 + depth p n e) * size p n e.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e shadow made;
      cbn [Continuation.record Continuation.remade size depth].
    - simpl. lia.
    - set (v := apply P o (map e args)).
      destruct (IH v (n + 1)%nat (bind n [v] 0 e) (bind n [made] 0%nat shadow) (made + 1)%nat) as [H1 H2].
      destruct (Continuation.record (k v) _ _ _ _) as [new outs]. simpl in *. lia.
    - set (vs := values q n e). set (m := length vs).
      destruct (IH vs (n + m)%nat (bind n vs 0 e) (bind n (seq (made + 1) m) 0%nat shadow) (made + 1 + m)%nat) as [H1 H2].
      destruct (IHq n e (fun i => i) n) as [H3 H4].
      destruct (Continuation.record (k vs) _ _ _ _) as [new outs]. destruct (Continuation.record q _ _ _ _) as [newq outsq].
      cbn [fst length] in *. rewrite app_length, repeat_length.
      set (dk := depth (k vs) _ _) in *. set (zk := size (k vs) _ _) in *. set (dq := depth q n e) in *. set (zq := size q n e) in *.
      set (top := (1 + Nat.max (S dq) dk)%nat).
      assert ((1 + dk) * zk <= top * zk)%nat by (apply Nat.mul_le_mono_r; unfold top; lia).
      assert ((1 + dq) * zq <= top * zq)%nat by (apply Nat.mul_le_mono_r; unfold top; lia).
      assert (1 * S m <= top * S m)%nat by (apply Nat.mul_le_mono_r; unfold top; lia).
      rewrite !Nat.mul_add_distr_l. clearbody top. lia.
  Qed.

  Theorem continuation_is_linear p n x : Continuation.made_in_all p n x <= n + (1 + depth p n x) * size p n x.
  Proof. unfold Continuation.made_in_all. destruct (made_few p n x (fun i => i) n). lia. Qed.
End Effects.
