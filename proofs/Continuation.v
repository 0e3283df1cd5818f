(* Continuation reverse mode, as it runs here: shares of cotangents wait at backpropagators, and the youngest is called
   first. A machine makes the steps, each the call of one backpropagator. *)
From Coq Require Export Sorted.
From Effgrad Require Export Reverse.

Section Continuation.
  Context {R : semiring} {P : signature R}.
  Add Ring R : (laws R).
  Local Open Scope R.
  Local Notation cell := (@cell R).
  Local Notation cells := (@cells R).
  Implicit Types (n made : nat) (e t tau : nat -> R) (shadow : nat -> nat).

  (* What a backpropagator does with its cotangent. Its age is its place in the list of all that were made. *)
  Inductive backpropagator :=
    | Keep                                                                       (* of an input *)
    | Operation (sources : list (nat * R))
    | Receive (rerun : nat)                                                      (* of a result of a checkpoint *)
    | Rerun (q : prog P) (n : nat) (e : nat -> R) (shadow : nat -> nat) (m : nat).  (* it has m results *)

  Record machine := Machine {
    calls : list backpropagator;
    pending : list nat;       (* the youngest first *)
    waiting : cells;
    received : cells }.

  Fixpoint insert (a : nat) (l : list nat) : list nat :=
    match l with [] => [a] | b :: r => if b <? a then a :: l else b :: insert a r end.

  Definition send (s : machine) (part : nat * R) : machine := {|
    calls := calls s;
    pending := match waiting s (fst part) with None => insert (fst part) (pending s) | Some _ => pending s end;
    waiting := accumulate (waiting s) part;
    received := received s |}.

  Definition send_received (s : machine) (outs : list nat) (ws : list cell) : machine :=
    fold_left (fun s '(a, w) => match w with Some x => send s (a, x) | None => s end) (combine outs ws) s.

  (* The backpropagators of a program from age [made] on, and those of its results. *)
  Fixpoint record (p : prog P) n e shadow made : list backpropagator * list nat :=
    match p with
    | Ret ys => ([], map shadow ys)
    | Do o args k =>
        let xs := map e args in
        let v := apply P o xs in
        let (new, outs) := record (k v) (n + 1) (bind n [v] 0 e) (bind n [made] 0%nat shadow) (made + 1) in
        (Operation (combine (map shadow args) (partials o xs)) :: new, outs)
    | Ck q k =>
        let vs := values q n e in
        let m := length vs in
        let (new, outs) := record (k vs) (n + m) (bind n vs 0 e) (bind n (seq (made + 1) m) 0%nat shadow) (made + 1 + m) in
        (Rerun q n e shadow m :: repeat (Receive made) m ++ new, outs)
    end.

  Definition step (s : machine) : machine :=
    match pending s with
    | [] => s
    | a :: rest =>
        match waiting s a, nth a (calls s) Keep with
        | None, _ | _, Keep => Machine (calls s) rest (waiting s) (received s)
        | Some g, Operation sources =>
            fold_left send (map (fun '(b, p) => (b, g * p)) sources)
              (Machine (calls s) rest (update a None (waiting s)) (received s))
        | Some g, Receive rerun =>
            send (Machine (calls s) rest (update a None (waiting s)) (update a (Some g) (received s))) (rerun, 0)
        | Some _, Rerun q n e shadow m =>
            let (new, outs) := record q n e shadow (length (calls s)) in
            send_received (Machine (calls s ++ new) rest (update a None (waiting s)) (received s))
              outs (map (received s) (seq (a + 1) m))
        end
    end.

  Definition run (k : nat) (s : machine) : machine := Nat.iter k step s.

  Lemma run_add j k s : run j (run k s) = run (j + k) s.
  Proof. unfold run. induction j; simpl; auto. now rewrite IHj. Qed.

  (* What holds between calls: who is pending is who has a cotangent, in order; nothing waits at what is not made. *)
  Record inv (s : machine) : Prop := {
    ordered : StronglySorted gt (pending s);
    waits : forall a, In a (pending s) <-> waiting s a <> None;
    made_waits : forall a, length (calls s) <= a -> waiting s a = None;
    made_received : forall a, length (calls s) <= a -> received s a = None }.

  Definition quiet (b : nat) (s : machine) : Prop := forall a, b <= a -> waiting s a = None.

  Lemma in_insert a b l : In b (insert a l) <-> b = a \/ In b l.
  Proof.
    induction l as [|x l IH]; simpl; [intuition congruence|]. destruct (x <? a); simpl; rewrite ?IH; intuition congruence.
  Qed.

  Lemma sorted_insert a l : StronglySorted gt l -> ~ In a l -> StronglySorted gt (insert a l).
  Proof.
    induction 1 as [|x l S IH F]; intros N; simpl; [repeat constructor|]. destruct (Nat.ltb_spec x a).
    - repeat constructor; auto. eapply Forall_impl; [|exact F]. simpl. lia.
    - constructor; [apply IH; intros I; apply N; now right|]. apply Forall_forall. intros y Hy.
      apply in_insert in Hy as [->|Hy]; [|rewrite Forall_forall in F; now apply F].
      assert (x <> a) by (intros ->; apply N; now left). lia.
  Qed.

  Lemma inv_send s a x : inv s -> a < length (calls s) -> inv (send s (a, x)).
  Proof.
    intros [O W M Q] L. constructor; unfold send; cbn [calls pending waiting received fst snd]; auto.
    - destruct (waiting s a) eqn:E; auto. apply sorted_insert; auto. now rewrite W, E.
    - intros b. unfold accumulate. cbn [fst snd]. destruct (Nat.eq_dec b a) as [->|N].
      + rewrite update_same. split; [discriminate|]. intros _. destruct (waiting s a) eqn:E.
        * apply W. congruence.
        * apply in_insert. auto.
      + rewrite update_other, <- W by auto. destruct (waiting s a); [tauto|]. rewrite in_insert. intuition congruence.
    - intros b Hb. unfold accumulate. cbn [fst snd]. rewrite update_other by lia. auto.
  Qed.

  Lemma inv_sends parts : forall s, inv s -> Forall (fun part => fst part < length (calls s)) parts ->
    let s' := fold_left send parts s in
    inv s' /\ calls s' = calls s /\ received s' = received s /\ waiting s' = accumulate_all parts (waiting s).
  Proof.
    induction parts as [|[a x] parts IH]; intros s I F; simpl; auto. inversion F; subst.
    destruct (IH (send s (a, x))) as (? & ? & ? & ?); auto using inv_send.
  Qed.

  Lemma inv_received outs : forall ws s, inv s -> Forall (fun a => a < length (calls s)) outs ->
    let s' := send_received s outs ws in
    inv s' /\ calls s' = calls s /\ received s' = received s /\ waiting s' = seed outs ws (waiting s).
  Proof.
    unfold send_received, seed. induction outs as [|a outs IH]; intros [|w ws] s I F; simpl; auto. inversion F; subst.
    destruct w as [x|]; [|now apply IH].
    destruct (IH ws (send s (a, x))) as (? & ? & ? & ?); auto using inv_send.
  Qed.

  Lemma head s b g : inv s -> quiet (b + 1) s -> waiting s b = Some g -> exists rest, pending s = b :: rest.
  Proof.
    intros I Q W. assert (In b (pending s)) as H by (apply (waits s I); congruence).
    pose proof (ordered s I) as O. pose proof (waits s I) as A. destruct (pending s) as [|c rest]; [destruct H|].
    exists rest. f_equal. destruct H as [->|H]; auto. inversion_clear O as [|? ? _ F].
    rewrite Forall_forall in F. specialize (F _ H). assert (waiting s c <> None) as N by (apply A; now left).
    exfalso. apply N, Q. lia.
  Qed.

  Lemma inv_pop s b rest r : inv s -> pending s = b :: rest -> (forall a, length (calls s) <= a -> r a = None) ->
    inv (Machine (calls s) rest (update b None (waiting s)) r).
  Proof.
    intros [O W M Q] E H. rewrite E in *. inversion O as [|? ? O' F]; subst.
    constructor; cbn [calls pending waiting received]; auto.
    - intros a. destruct (Nat.eq_dec a b) as [->|N].
      + rewrite update_same. split; [|congruence]. rewrite Forall_forall in F. intros I. specialize (F _ I). lia.
      + rewrite update_other, <- W by auto. simpl. intuition congruence.
    - intros a Ha. unfold update. destruct (Nat.eqb a b); auto.
  Qed.

  Lemma quiet_less b s : quiet (b + 1) s -> waiting s b = None -> quiet b s.
  Proof. intros Q E a Ha. destruct (Nat.eq_dec a b) as [->|]; auto. apply Q. lia. Qed.

  (* The backpropagators [new] are those from age [made] on. *)
  Definition holds (s : machine) made (new : list backpropagator) : Prop :=
    made + length new <= length (calls s) /\ forall i, i < length new -> nth (made + i) (calls s) Keep = nth i new Keep.

  Definition grows (s s' : machine) : Prop :=
    length (calls s) <= length (calls s') /\ forall a, a < length (calls s) -> nth a (calls s') Keep = nth a (calls s) Keep.

  Lemma holds_grows s s' made new : holds s made new -> grows s s' -> holds s' made new.
  Proof. intros [L H] [L' G]. split; [lia|]. intros i Hi. rewrite G by lia. auto. Qed.

  Lemma grows_refl s : grows s s.
  Proof. split; auto. Qed.

  Lemma grows_trans s s' s'' : grows s s' -> grows s' s'' -> grows s s''.
  Proof. intros [L G] [L' G']. split; [lia|]. intros a Ha. rewrite G', G by lia. auto. Qed.

  Lemma grows_same s s' : calls s' = calls s -> grows s s'.
  Proof. intros E. unfold grows. rewrite E. split; auto. Qed.

  (* Backpropagators that second runs make beside those of the first. *)
  Fixpoint remade (p : prog P) n e : nat :=
    match p with
    | Ret _ => 0
    | Do o args k => let v := apply P o (map e args) in remade (k v) (n + 1) (bind n [v] 0 e)
    | Ck q k =>
        let vs := values q n e in
        length (fst (record q n e (fun i => i) n)) + remade q n e + remade (k vs) (n + length vs) (bind n vs 0 e)
    end.

  (* How many there are does not depend on their ages. *)
  Lemma length_record p : forall n e shadow shadow' made made',
    length (fst (record p n e shadow made)) = length (fst (record p n e shadow' made')).
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e shadow shadow' made made'; cbn [record]; auto.
    - set (v := apply P o (map e args)).
      specialize (IH v (n + 1)%nat (bind n [v] 0 e) (bind n [made] 0%nat shadow) (bind n [made'] 0%nat shadow') (made + 1)%nat (made' + 1)%nat).
      do 2 destruct (record (k v) _ _ _ _). simpl in *. now rewrite IH.
    - set (vs := values q n e). set (m := length vs).
      specialize (IH vs (n + m)%nat (bind n vs 0 e) (bind n (seq (made + 1) m) 0%nat shadow)
        (bind n (seq (made' + 1) m) 0%nat shadow') (made + 1 + m)%nat (made' + 1 + m)%nat).
      do 2 destruct (record (k vs) _ _ _ _). simpl in *. now rewrite !app_length, !repeat_length, IH.
  Qed.

  (* The receivers of a checkpoint's results, from the last to the first, hand what came to them to the second run. *)
  Lemma receivers made m : forall s, inv s -> quiet (made + 1 + m) s ->
    (forall i, i < m -> nth (made + 1 + i) (calls s) Keep = Receive made) -> made < length (calls s) ->
    exists j, j <= m /\ let s' := run j s in
      inv s' /\ quiet (made + 1) s' /\ calls s' = calls s /\ (forall a, a < made -> waiting s' a = waiting s a) /\
      (forall a, a <= made \/ made + 1 + m <= a -> received s' a = received s a) /\
      (forall i, i < m -> received s' (made + 1 + i)%nat =
        match waiting s (made + 1 + i)%nat with Some g => Some g | None => received s (made + 1 + i)%nat end) /\
      (waiting s made <> None \/ (exists i, i < m /\ waiting s (made + 1 + i)%nat <> None) -> waiting s' made <> None).
  Proof.
    induction m as [|m IH]; intros s I Q C L.
    - exists 0%nat. rewrite Nat.add_0_r in Q. repeat split; auto; try apply I; try (intros; lia).
      intros [H|[i [Hi _]]]; [auto|lia].
    - assert (quiet (made + 1 + m + 1) s) as Q' by (intros a Ha; apply Q; lia).
      destruct (waiting s (made + 1 + m)%nat) as [g|] eqn:W.
      + destruct (head s _ g I Q' W) as [rest E].
        set (s1 := step s). assert (s1 = send (Machine (calls s) rest (update (made + 1 + m)%nat None (waiting s))
          (update (made + 1 + m)%nat (Some g) (received s))) (made, 0)) as E1.
        { unfold s1, step. rewrite E, W, C by lia. reflexivity. }
        assert (length (calls s) > made + 1 + m)%nat as Lc.
        { destruct (Nat.lt_ge_cases (made + 1 + m) (length (calls s))); auto. rewrite (made_waits s I) in W by auto. discriminate. }
        assert (inv s1) as I1.
        { rewrite E1. apply inv_send; [|exact L]. apply inv_pop; auto.
          intros a Ha. rewrite update_other by lia. now apply made_received. }
        assert (quiet (made + 1 + m) s1) as Q1.
        { intros a Ha. rewrite E1. unfold send, accumulate. cbn [waiting fst snd]. rewrite update_other by lia.
          unfold update. destruct (Nat.eqb_spec a (made + 1 + m)); auto. apply Q. lia. }
        destruct (IH s1) as (j & Lj & I' & Qu & Cs & Ws & Rs & Rn & Wn); auto.
        { intros i Hi. rewrite E1. apply C. lia. }
        { rewrite E1. exact L. }
        exists (j + 1)%nat. split; [lia|]. rewrite <- run_add. change (run 1 s) with s1. cbn zeta.
        assert (forall a, a <> made -> a <> (made + 1 + m)%nat -> waiting s1 a = waiting s a) as Hw.
        { intros a H1 H2. rewrite E1. unfold send, accumulate. cbn [waiting fst snd]. now rewrite !update_other. }
        assert (waiting s1 made <> None) as Hm.
        { rewrite E1. unfold send, accumulate. cbn [waiting fst snd]. now rewrite update_same. }
        split; [auto|]. split; [auto|]. split; [rewrite Cs, E1; reflexivity|]. split.
        { intros a Ha. rewrite Ws by auto. apply Hw; lia. }
        split.
        { intros a Ha. rewrite Rs by lia. rewrite E1. cbn. apply update_other. lia. }
        split.
        { intros i Hi. destruct (Nat.eq_dec i m) as [->|].
          - rewrite Rs, W by lia. rewrite E1. cbn. now rewrite update_same.
          - rewrite Rn by lia. rewrite Hw by lia. rewrite E1. cbn. rewrite update_other by lia. reflexivity. }
        { intros _. apply Wn. now left. }
      + destruct (IH s) as (j & Lj & I' & Qu & Cs & Ws & Rs & Rn & Wn); auto.
        { now apply quiet_less. }
        exists j. cbn zeta. repeat split; auto; try apply I'.
        { intros a Ha. apply Rs. lia. }
        { intros i Hi. destruct (Nat.eq_dec i m) as [->|]; [|apply Rn; lia]. rewrite W. apply Rs. lia. }
        { intros [H|[i [Hi H]]]; apply Wn; auto. right. exists i. split; auto.
          destruct (Nat.eq_dec i m) as [->|]; [congruence|lia]. }
  Qed.

  Lemma accumulate_all_other parts a : forall c : cells, Forall (fun part => fst part <> a) parts ->
    accumulate_all parts c a = c a.
  Proof.
    induction parts as [|[b x] parts IH]; intros c F; simpl; auto. inversion F; subst. simpl in *. unfold accumulate_all in *.
    rewrite IH by auto. unfold accumulate. cbn [fst snd]. apply update_other. congruence.
  Qed.

  Lemma seed_other outs a : forall ws (c : cells), Forall (fun b => b <> a) outs -> seed outs ws c a = c a.
  Proof.
    unfold seed. induction outs as [|b outs IH]; intros [|w ws] c F; simpl; auto. inversion F; subst.
    rewrite IH by auto. destruct w; auto. unfold accumulate. cbn [fst snd]. apply update_other. congruence.
  Qed.

  Lemma total_quiet n made (c : cells) tau : made <= n -> (forall a, made <= a -> c a = None) ->
    total n c tau = total made c tau.
  Proof.
    intros L H. unfold total. induction n; [now replace made with 0%nat by lia|]. simpl.
    destruct (Nat.eq_dec made (S n)) as [->|]; auto. rewrite IHn, H by lia. simpl. ring.
  Qed.

  Lemma inv_extend s new : inv s -> inv (Machine (calls s ++ new) (pending s) (waiting s) (received s)).
  Proof.
    intros [O W M Q]. constructor; cbn [calls pending waiting received]; auto;
      intros a Ha; rewrite app_length in Ha; [apply M|apply Q]; lia.
  Qed.

  Lemma Forall_combine_fst {A B} (F : A -> Prop) l : forall ps : list B, Forall F l ->
    Forall (fun part => F (fst part)) (combine l ps).
  Proof. induction l; intros [|p ps] H; simpl; auto. inversion H; subst. constructor; auto. Qed.

  Lemma Forall_parts (F : nat -> Prop) (o : op P) xs targets g : Forall F targets ->
    Forall (fun part => F (fst part)) (parts o xs targets g).
  Proof.
    intros H. unfold parts. apply Forall_map. eapply Forall_impl; [|apply Forall_combine_fst, H]. now intros [a p].
  Qed.

  (* Running until nothing waits at the program's own backpropagators passes on all that waited at them, calls each at
     most once, and sends to nobody but those of the values that the program could name ([Q]). *)
  Lemma runs p : forall n e t shadow made tau (Q : nat -> Prop),
    scoped p n e -> agree n t shadow made tau -> (forall i, i < n -> Q (shadow i)) ->
    let (new, outs) := record p n e shadow made in
    exists tau', (forall i, i < made -> tau' i = tau i) /\
      Forall (fun a => a < made + length new /\ (a < made -> Q a)) outs /\ map tau' outs = forward p n e t /\
      forall s, inv s -> holds s made new -> quiet (made + length new) s ->
        (forall a, made <= a < made + length new -> received s a = None) ->
        exists k, k <= length new + remade p n e /\ let s' := run k s in
          inv s' /\ quiet made s' /\ grows s s' /\ (forall a, a < made -> received s' a = received s a) /\
          (forall a, a < made -> ~ Q a -> waiting s' a = waiting s a) /\
          total made (waiting s') tau = total (made + length new) (waiting s) tau'.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e t shadow made tau Q Hs A HQ; cbn [record forward scoped remade] in *.
    - destruct (agree_args _ _ _ _ _ _ A Hs) as [Ho Hm]. exists tau. cbn [length]. rewrite Nat.add_0_r.
      split; [auto|]. split.
      { rewrite Forall_forall in *. intros a Ha. split; [auto|]. intros _. apply in_map_iff in Ha as [y [<- Hy]]. auto. }
      split; [auto|]. intros s I H Qu _. exists 0%nat. cbn. repeat split; auto; apply I.
    - destruct Hs as [Ha Hk]. destruct (agree_args _ _ _ _ _ _ A Ha) as [Hb Ht].
      set (xs := map e args) in *. set (v := apply P o xs) in *. set (x := push o xs (map t args)) in *.
      assert (forall i, i < n + 1 -> Q (bind n [made] 0%nat shadow i) \/ bind n [made] 0%nat shadow i = made) as HQ'.
      { intros i Hi. unfold bind. destruct (Nat.ltb_spec i n); auto. replace (i - n)%nat with 0%nat by lia. auto. }
      specialize (IH v _ _ _ _ _ _ (fun a => Q a \/ a = made) Hk (agree_one n t shadow made tau x A) HQ').
      destruct (record _ _ _ _ _) as [new outs]. destruct IH as (tau' & E & Ho & Hm & Run).
      exists tau'. cbn [length]. rewrite <- Nat.add_assoc in *. cbn [Nat.add] in *.
      split; [intros i Hi; rewrite E by lia; now apply bind_old|]. split.
      { eapply Forall_impl; [|exact Ho]. intros a [H1 H2]. split; auto. intros. destruct H2; auto; lia. }
      split; [auto|]. intros s I [Lh Hh] Qu Rn. cbn [length] in *.
      destruct (Run s) as (k1 & L1 & I1 & Q1 & G1 & R1 & W1 & T1); auto.
      { split; [lia|]. intros i Hi. specialize (Hh (S i)). simpl in Hh. rewrite <- Nat.add_assoc. apply Hh. lia. }
      { intros a Ha'. apply Rn. lia. }
      set (s1 := run k1 s) in *. rewrite total_one in T1. destruct (waiting s1 made) as [g|] eqn:W.
      + destruct (head s1 made g I1 Q1 W) as [rest Ep].
        set (base := Machine (calls s1) rest (update made None (waiting s1)) (received s1)).
        set (ps := parts o xs (map shadow args) g).
        assert (step s1 = fold_left send ps base) as Es.
        { unfold step. rewrite Ep, W. destruct G1 as [_ G]. rewrite G by lia.
          specialize (Hh 0%nat). rewrite Nat.add_0_r in Hh. rewrite Hh by lia. reflexivity. }
        assert (Forall (fun part => fst part < length (calls base)) ps) as F.
        { apply (Forall_parts (fun a => a < length (calls base))). eapply Forall_impl; [|exact Hb].
          intros a Hx. destruct G1. simpl in *. lia. }
        destruct (inv_sends ps base) as (I2 & C2 & R2 & W2); auto.
        { apply inv_pop; auto. apply I1. }
        exists (1 + k1)%nat. split; [lia|]. rewrite <- run_add. fold s1. change (run 1 s1) with (step s1). rewrite Es.
        cbn zeta. split; [auto|]. split.
        { intros a Hx. rewrite W2, accumulate_all_other.
          - cbn. unfold update. destruct (Nat.eqb_spec a made); auto. apply Q1. lia.
          - apply (Forall_parts (fun b => b <> a)). eapply Forall_impl; [|exact Hb]. simpl. lia. }
        split; [eapply grows_trans; [exact G1|]; apply grows_same; rewrite C2; reflexivity|]. split.
        { intros a Hx. rewrite R2. cbn. apply R1. lia. }
        split.
        { intros a Hx Nq. rewrite W2, accumulate_all_other.
          - cbn. rewrite update_other by lia. apply W1; [lia|]. intros [?| ->]; auto; lia.
          - apply (Forall_parts (fun b => b <> a)). apply Forall_forall. intros b Hb' ->. apply in_map_iff in Hb' as [i [<- Hi]].
            rewrite Forall_forall in Ha. auto. }
        rewrite W2. unfold ps. rewrite total_accumulate_all, parts_push, <- Ht by now apply parts_below.
        fold x. rewrite <- T1. f_equal. apply total_ext; auto. intros i Hi. cbn. apply update_other. lia.
      + exists k1. split; [lia|]. fold s1. cbn zeta. split; [auto|]. split; [now apply quiet_less|]. split; [auto|].
        split; [intros; apply R1; lia|]. split.
        { intros a Hx Nq. apply W1; [lia|]. intros [?| ->]; auto; lia. }
        rewrite <- T1. simpl. ring.
    - destruct Hs as [Hq Hk]. set (vs := values q n e) in *. set (ts := forward q n e t) in *. set (m := length vs) in *.
      assert (length ts = m) as L by apply length_forward.
      set (tau1 := bind made (0 :: ts) 0 tau).
      assert (agree (n + m) (bind n ts 0 t) (bind n (seq (made + 1) m) 0%nat shadow) (made + 1 + m) tau1) as A1.
      { rewrite <- L. apply (agree_bind n t shadow made tau); auto; try lia.
        - intros. now apply bind_old.
        - apply Forall_forall. intros i Hi. apply in_seq in Hi. lia.
        - pose proof (map_bind_seq made (0 :: ts) 0 tau) as H. cbn in H. injection H as _ H. now rewrite Nat.add_1_r. }
      assert (forall i, i < n + m -> Q (bind n (seq (made + 1) m) 0%nat shadow i) \/ made < bind n (seq (made + 1) m) 0%nat shadow i) as HQ'.
      { intros i Hi. unfold bind. destruct (Nat.ltb_spec i n); auto. right. rewrite seq_nth by lia. lia. }
      specialize (IH vs _ _ _ _ _ _ (fun a => Q a \/ made < a) Hk A1 HQ').
      destruct (record (k vs) _ _ _ _) as [new outs]. destruct IH as (tau' & E & Ho & Hm & Run).
      exists tau'. cbn [length]. rewrite app_length, repeat_length.
      replace (made + S (m + length new))%nat with (made + 1 + m + length new)%nat by lia.
      split; [intros i Hi; rewrite E by lia; now apply bind_old|]. split.
      { eapply Forall_impl; [|exact Ho]. intros a [H1 H2]. split; auto. intros. destruct H2; auto; lia. }
      split; [auto|]. intros s I [Lh Hh] Qu Rn. cbn [length] in *. rewrite app_length, repeat_length in *.
      destruct (Run s) as (k1 & L1 & I1 & Q1 & G1 & R1 & W1 & T1); auto.
      { split; [lia|]. intros i Hi. specialize (Hh (S (m + i))). simpl in Hh.
        rewrite app_nth2, repeat_length in Hh by (rewrite repeat_length; lia).
        replace (m + i - m)%nat with i in Hh by lia. rewrite <- Hh by lia. f_equal. lia. }
      { intros a Ha. apply Rn. lia. }
      set (s1 := run k1 s) in *.
      assert (nth made (calls s1) Keep = Rerun q n e shadow m) as C0.
      { destruct G1 as [_ G]. rewrite G by lia. specialize (Hh 0%nat). rewrite Nat.add_0_r in Hh. apply Hh. lia. }
      assert (forall i, i < m -> nth (made + 1 + i) (calls s1) Keep = Receive made) as Cr.
      { intros i Hi. destruct G1 as [_ G]. rewrite G by lia. specialize (Hh (S i)). simpl in Hh.
        rewrite app_nth1 in Hh by (rewrite repeat_length; lia). replace (made + 1 + i)%nat with (made + S i)%nat by lia.
        rewrite Hh, (nth_indep _ Keep (Receive made)) by (rewrite ?repeat_length; lia). apply nth_repeat. }
      destruct (receivers made m s1) as (j & Lj & I2 & Q2 & C2 & W2 & R2 & Rc & Wn); auto; [destruct G1; lia|].
      set (s2 := run j s1) in *.
      assert (total (made + 1 + m) (waiting s1) tau1 = total made (waiting s1) tau
        + sum2 (map value_of (map (waiting s1) (seq (made + 1) m))) ts) as T.
      { replace (made + 1 + m)%nat with (made + length (zero :: ts))%nat by (simpl; lia).
        unfold tau1. rewrite total_bind. simpl. rewrite L, (Nat.add_1_r made). ring. }
      rewrite <- T1, T. clear T1 T.
      assert (total made (waiting s2) tau = total made (waiting s1) tau) as T2 by (apply total_ext; auto).
      assert (grows s s2) as G2 by (eapply grows_trans; [exact G1|]; now apply grows_same).
      destruct (waiting s2 made) as [g|] eqn:W.
      + destruct (head s2 made g I2 Q2 W) as [rest Ep].
        set (made2 := length (calls s2)). set (tau0 := fun i => if i <? made then tau i else 0).
        assert (made < made2) as Lm by (destruct G2; unfold made2; lia).
        assert (agree n t shadow made2 tau0) as A0.
        { intros i Hi. destruct (A i Hi). unfold tau0. split; [lia|]. destruct (Nat.ltb_spec (shadow i) made); auto. lia. }
        specialize (IHq n e t shadow made2 tau0 (fun a => Q a /\ a < made) Hq A0).
        pose proof (length_record q n e shadow (fun i => i) made2 n) as Lr.
        set (base := Machine (calls s2) rest (update made None (waiting s2)) (received s2)).
        assert (inv base) as Ib by (apply inv_pop; auto; apply I2).
        assert (step s2 = let (newq, outsq) := record q n e shadow made2 in
          send_received (Machine (calls base ++ newq) rest (waiting base) (received base)) outsq (map (received s2) (seq (made + 1) m))) as Es.
        { rewrite <- C2 in C0. unfold step. rewrite Ep, W, C0. reflexivity. }
        destruct (record q n e shadow made2) as [newq outsq]. cbn [fst] in Lr.
        destruct IHq as (tau'' & E'' & Ho'' & Hm'' & Run''); [intros i Hi; split; auto; now destruct (A i Hi)|].
        pose proof (inv_extend base newq Ib) as Ie.
        set (ext := Machine (calls base ++ newq) (pending base) (waiting base) (received base)) in *.
        set (given := map (received s2) (seq (made + 1) m)) in *.
        destruct (inv_received outsq given ext) as (I3 & C3 & R3 & W3); auto.
        { cbn. rewrite app_length. eapply Forall_impl; [|exact Ho'']. cbn. intros a [? _]. fold made2. auto. }
        change (Machine (calls base ++ newq) rest (waiting base) (received base)) with ext in Es.
        set (s3 := send_received ext outsq given) in *.
        assert (forall a, made <= a -> waiting base a = None) as Nb.
        { intros a Ha. cbn. unfold update. destruct (Nat.eqb_spec a made); auto. apply Q2. lia. }
        destruct (Run'' s3) as (k3 & L3 & I4 & Q4 & G4 & R4 & W4 & T4); auto.
        { split; rewrite C3; cbn; [rewrite app_length; fold made2; lia|].
          intros i Hi. rewrite app_nth2 by (fold made2; lia). f_equal. fold made2. lia. }
        { intros a Ha. rewrite W3, seed_other; [apply Nb; lia|]. eapply Forall_impl; [|exact Ho'']. simpl. intros b [? _]. lia. }
        { intros a Ha. rewrite R3. cbn. apply made_received; auto. fold made2. lia. }
        exists (k3 + (1 + (j + k1)))%nat. split; [rewrite <- Lr; lia|].
        rewrite <- !run_add. fold s1. fold s2. change (run 1 s2) with (step s2). rewrite Es. set (s4 := run k3 s3) in *. cbn zeta.
        assert (forall a, made <= a < made2 -> waiting s3 a = None) as N3.
        { intros a Ha. rewrite W3, seed_other; [apply Nb; lia|]. eapply Forall_impl; [|exact Ho'']. simpl. intros b [_ Hb] ->.
          destruct Hb; lia. }
        split; [auto|]. split.
        { intros a Ha. destruct (Nat.lt_ge_cases a made2) as [Hl|]; auto. rewrite W4; auto. intros [_ ?]. lia. }
        split.
        { eapply grows_trans; [exact G2|]. eapply grows_trans; [|exact G4]. unfold grows. rewrite C3. cbn. rewrite app_length.
          split; [lia|]. intros a Ha. now apply app_nth1. }
        split; [intros a Ha; rewrite R4, R3 by lia; cbn; rewrite R2 by lia; apply R1; lia|]. split.
        { intros a Ha Nq. rewrite W4 by (try lia; tauto). rewrite W3, seed_other.
          - cbn. rewrite update_other, W2 by lia. apply W1; [lia|]. intros [?|?]; [auto|lia].
          - eapply Forall_impl; [|exact Ho'']. simpl. intros b [_ Hb] ->. destruct Hb; [lia|auto]. }
        transitivity (total made2 (waiting s4) tau0).
        { rewrite (total_quiet made2 made); [|lia|].
          - apply total_ext; auto. intros i Hi. unfold tau0. destruct (Nat.ltb_spec i made); auto. lia.
          - intros a Ha. destruct (Nat.lt_ge_cases a made2) as [Hl|]; auto. rewrite W4; auto. intros [_ ?]. lia. }
        rewrite T4, W3, total_seed, Hm'' by (eapply Forall_impl; [|exact Ho'']; simpl; tauto). fold ts.
        rewrite (total_quiet _ made); [|lia|auto].
        assert (given = map (waiting s1) (seq (made + 1) m)) as ->.
        { unfold given. apply map_ext_in. intros a Ha. apply in_seq in Ha. replace a with (made + 1 + (a - made - 1))%nat by lia.
          rewrite Rc by lia. destruct (waiting s1 (made + 1 + (a - made - 1))%nat); auto. rewrite R1 by lia. apply Rn. lia. }
        f_equal. rewrite <- T2. apply total_ext; intros i Hi.
        * cbn. apply update_other. lia.
        * rewrite E'' by lia. unfold tau0. destruct (Nat.ltb_spec i made); auto. lia.
      + exists (j + k1)%nat. split; [lia|]. rewrite <- run_add. fold s1. fold s2. cbn zeta. split; [auto|].
        split; [now apply quiet_less|]. split; [auto|]. split; [intros a Ha; rewrite R2 by lia; apply R1; lia|]. split.
        { intros a Ha Nq. rewrite W2 by auto. apply W1; [lia|]. intros [?|?]; [auto|lia]. }
        rewrite T2, sum2_none; [ring|]. unfold none. apply forallb_forall. intros w Hw.
        apply in_map_iff in Hw as [a [<- Ha]]. apply in_seq in Ha. destruct (waiting s1 a) eqn:Wa; auto. exfalso.
        apply Wn; auto. right. exists (a - made - 1)%nat. split; [lia|].
        replace (made + 1 + (a - made - 1))%nat with a by lia. congruence.
  Qed.

  (* The backpropagators of inputs keep what comes; calling them changes nothing. *)
  Lemma drain l : forall s, pending s = l -> Forall (fun a => nth a (calls s) Keep = Keep) l ->
    pending (run (length l) s) = [] /\ waiting (run (length l) s) = waiting s.
  Proof.
    induction l as [|a l IH]; intros s E F; [auto|]. inversion F as [|? ? K F']; subst.
    replace (length (a :: l)) with (length l + 1)%nat by (simpl; lia). rewrite <- run_add. change (run 1 s) with (step s).
    assert (step s = Machine (calls s) l (waiting s) (received s)) as ->.
    { unfold step. rewrite E, K. now destruct (waiting s a). }
    exact (IH (Machine (calls s) l (waiting s) (received s)) eq_refl F').
  Qed.

  Lemma run_idle k s : pending s = [] -> run k s = s.
  Proof. intros H. unfold run. induction k; simpl; auto. rewrite IHk. unfold step. now rewrite H. Qed.

  Lemma few_pending s n : inv s -> quiet n s -> length (pending s) <= n.
  Proof.
    intros I Q. rewrite <- (seq_length n 0). apply NoDup_incl_length.
    - pose proof (ordered s I) as O. induction O as [|a l O IH F]; constructor; auto.
      rewrite Forall_forall in F. intros H. specialize (F _ H). lia.
    - intros a Ha. apply in_seq. apply (waits s I) in Ha. destruct (Nat.lt_ge_cases a n); [lia|]. now rewrite Q in Ha.
  Qed.

  (* A whole derivative: record, seed the results with [ws], and call the youngest until nobody is pending. *)
  Definition start (p : prog P) n (x : nat -> R) (ws : list R) : machine :=
    let (new, outs) := record p n x (fun i => i) n in
    send_received (Machine (repeat Keep n ++ new) [] empty empty) outs (map Some ws).

  Definition made_in_all (p : prog P) n (x : nat -> R) : nat :=
    n + length (fst (record p n x (fun i => i) n)) + remade p n x.

  Definition continuation (p : prog P) n x ws : cells := waiting (run (made_in_all p n x) (start p n x ws)).

  Theorem continuation_is_transpose p n x t ws : scoped p n x ->
    pending (run (made_in_all p n x) (start p n x ws)) = [] /\
    total n (continuation p n x ws) t = sum2 ws (forward p n x t).
  Proof.
    intros Hs. unfold continuation, made_in_all, start.
    pose proof (runs p n x t (fun i => i) n t (fun _ => True) Hs (agree_inputs n t) (fun _ _ => I)) as H.
    destruct (record p n x (fun i => i) n) as [new outs]. destruct H as (tau' & _ & Ho & Hm & Run). cbn [fst].
    set (s0 := Machine (repeat Keep n ++ new) [] empty empty).
    assert (inv s0) as I0.
    { constructor; cbn; auto using SSorted_nil. intros a. split; [tauto|]. unfold empty. congruence. }
    destruct (inv_received outs (map Some ws) s0) as (I1 & C1 & R1 & W1); auto.
    { cbn. rewrite app_length, repeat_length. eapply Forall_impl; [|exact Ho]. simpl. tauto. }
    set (s1 := send_received s0 outs (map Some ws)) in *.
    destruct (Run s1) as (k & L & I2 & Q2 & [_ G2] & _ & _ & T2); auto.
    { split; rewrite C1; cbn; [rewrite app_length, repeat_length; lia|]. intros i Hi.
      rewrite app_nth2, repeat_length by (rewrite repeat_length; lia). f_equal. lia. }
    { intros a Ha. rewrite W1, seed_other; auto. eapply Forall_impl; [|exact Ho]. simpl. intros b [? _]. lia. }
    { intros a _. now rewrite R1. }
    set (s2 := run k s1) in *. destruct (drain (pending s2) s2) as [E W]; auto.
    { apply Forall_forall. intros a Ha. apply (waits s2 I2) in Ha.
      assert (a < n) by (destruct (Nat.lt_ge_cases a n); auto; now rewrite Q2 in Ha).
      rewrite G2 by (rewrite C1; cbn; rewrite app_length, repeat_length; lia). rewrite C1. cbn.
      rewrite app_nth1 by now rewrite repeat_length. apply nth_repeat. }
    pose proof (few_pending s2 n I2 Q2).
    set (j := length (pending s2)) in *.
    assert (run (n + length new + remade p n x) s1 = run j s2) as ->.
    { unfold s2. rewrite run_add. replace (n + length new + remade p n x)%nat
        with ((n + length new + remade p n x - (j + k)) + (j + k))%nat by lia.
      rewrite <- run_add. apply run_idle. rewrite <- run_add. exact E. }
    assert (Forall (fun a => a < n + length new) outs) as Ho' by (eapply Forall_impl; [|exact Ho]; simpl; tauto).
    split; auto. rewrite W, T2, W1, total_seed, Hm, values_some, total_none by auto. ring.
  Qed.

  Corollary continuation_is_forward p n x ws a : scoped p n x -> a < n ->
    value_of (continuation p n x ws a) = sum2 ws (forward p n x (unit a)).
  Proof.
    intros Hs Ha. rewrite <- total_unit with (n := n) by auto. now apply continuation_is_transpose.
  Qed.
End Continuation.
