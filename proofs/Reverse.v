(* Stateful reverse mode, with and without checkpoints, is the transpose of forward mode.

   Every value owns a cell. [shadow] says which cell each named value has, and [made] is the first address that is free.
   [finish] is the continuation that a clause resumes: what becomes of the results. *)
From Effgrad Require Export Program.

Section Reverse.
  Context {R : semiring} {P : signature R}.
  Add Ring R : (laws R).
  Local Open Scope R.
  Local Notation cell := (@cell R).
  Local Notation cells := (@cells R).
  Implicit Types (n made : nat) (e t tau : nat -> R) (shadow : nat -> nat) (c : cells).

  (* The arguments' shares of a cotangent. *)
  Definition parts (o : op P) (xs : list R) (targets : list nat) (g : R) : list (nat * R) :=
    map (fun '(a, p) => (a, g * p)) (combine targets (partials o xs)).

  (* Cells from [made] on are new: nothing has contributed. *)
  Definition clear (made : nat) c : cells := fun i => if i <? made then c i else None.

  Definition seed (outs : list nat) (ws : list cell) c : cells :=
    fold_left (fun c '(a, w) => match w with Some x => accumulate c (a, x) | None => c end) (combine outs ws) c.

  Definition none (ws : list cell) : bool := forallb (fun w => match w with Some _ => false | None => true end) ws.

  (* [again]: whether checkpoints are run again; otherwise they are recorded like the rest. *)
  Fixpoint reverse (again : bool) (p : prog P) n e shadow (made : nat)
    (finish : list R -> list nat -> nat -> cells -> cells) c {struct p} : cells :=
    match p with
    | Ret ys => finish (map e ys) (map shadow ys) made c
    | Do o args k =>
        let xs := map e args in
        let v := apply P o xs in
        let c := reverse again (k v) (n + 1) (bind n [v] 0 e) (bind n [made] 0%nat shadow) (made + 1) finish (clear made c) in
        match c made with
        | None => c
        | Some g => accumulate_all (parts o xs (map shadow args) g) c
        end
    | Ck q k =>
        if again then
          let vs := values q n e in
          let outs := seq made (length vs) in
          let c := reverse again (k vs) (n + length vs) (bind n vs 0 e) (bind n outs 0%nat shadow) (made + length vs)
            finish (clear made c) in
          let given := map c outs in
          if none given then c else reverse again q n e shadow made (fun _ outs _ => seed outs given) c
        else
          reverse again q n e shadow made (fun vs outs made =>
            reverse again (k vs) (n + length vs) (bind n vs 0 e) (bind n outs 0%nat shadow) made finish) c
    end.

  Lemma sum2_combine (tau : nat -> R) targets ps :
    sum2 (map snd (combine targets ps)) (map tau (map fst (combine targets ps))) = sum2 ps (map tau targets).
  Proof. revert ps. induction targets as [|a l IH]; intros [|p ps]; simpl; rewrite ?IH; auto. Qed.

  Lemma parts_push tau o xs targets g :
    sum2 (map snd (parts o xs targets g)) (map tau (map fst (parts o xs targets g))) = g * push o xs (map tau targets).
  Proof.
    unfold parts, push. generalize (partials o xs) as ps. induction targets as [|a l IH]; intros [|p ps]; simpl;
      rewrite ?IH; try ring.
  Qed.

  Lemma parts_below o xs targets g n : Forall (fun a => a < n) targets ->
    Forall (fun part => fst part < n) (parts o xs targets g).
  Proof.
    unfold parts. generalize (partials o xs) as ps. intros ps H. revert ps.
    induction H; intros [|p ps]; simpl; constructor; auto.
  Qed.

  Lemma total_seed n tau outs : forall ws c, Forall (fun a => a < n) outs ->
    total n (seed outs ws c) tau = total n c tau + sum2 (map value_of ws) (map tau outs).
  Proof.
    unfold seed. induction outs as [|a outs IH]; intros [|w ws] c H; simpl; try ring.
    inversion H; subst. rewrite IH by auto. destruct w; simpl; rewrite ?total_accumulate by auto; ring.
  Qed.

  Lemma total_clear n made c tau : n <= made -> total n (clear made c) tau = total n c tau.
  Proof.
    intros H. apply total_ext; auto. intros i Hi. unfold clear. destruct (Nat.ltb_spec i made); auto. lia.
  Qed.

  Lemma clear_new made c i : made <= i -> clear made c i = None.
  Proof. intros H. unfold clear. destruct (Nat.ltb_spec i made); auto. lia. Qed.

  Lemma sum2_none (ws : list cell) ts : none ws = true -> sum2 (map value_of ws) ts = 0.
  Proof.
    revert ts. induction ws as [|[w|] ws IH]; intros [|t ts] H; simpl in *; try discriminate; auto.
    rewrite IH by auto. ring.
  Qed.

  Lemma sum2_new made m c ts : sum2 (map value_of (map (clear made c) (seq made m))) ts = 0.
  Proof.
    apply sum2_none. unfold none. apply forallb_forall. intros w Hw. apply in_map_iff in Hw as [i [<- Hi]].
    apply in_seq in Hi. now rewrite clear_new by lia.
  Qed.

  (* Shadows and tangents of the environment agree, and stay so when results are bound. *)
  Definition agree n t shadow (made : nat) tau := forall i, i < n -> shadow i < made /\ t i = tau (shadow i).

  Lemma agree_args n t shadow made tau args : agree n t shadow made tau -> Forall (fun a => a < n) args ->
    Forall (fun a => a < made) (map shadow args) /\ map t args = map tau (map shadow args).
  Proof.
    intros H F. rewrite map_map. split.
    - apply Forall_map. eapply Forall_impl; [|exact F]. intros a Ha. now apply H.
    - eapply map_ext_below; eauto. intros i Hi. now apply H.
  Qed.

  Lemma agree_bind n t shadow made tau outs ts made' tau' : agree n t shadow made tau -> made <= made' ->
    (forall i, i < made -> tau' i = tau i) -> Forall (fun a => a < made') outs -> map tau' outs = ts ->
    agree (n + length ts) (bind n ts 0 t) (bind n outs 0%nat shadow) made' tau'.
  Proof.
    intros H L Ht Ho <- i Hi. rewrite map_length in Hi. destruct (Nat.lt_ge_cases i n) as [Hn|Hn].
    - rewrite !bind_old by auto. destruct (H i Hn) as [? ->]. rewrite Ht by auto. split; [lia|auto].
    - replace i with (n + (i - n))%nat by lia. rewrite !bind_new. set (j := (i - n)%nat).
      assert (j < length outs)%nat by (unfold j; lia). split.
      + rewrite Forall_forall in Ho. now apply Ho, nth_In.
      + rewrite (nth_indep _ 0 (tau' 0%nat)) by now rewrite map_length. now rewrite map_nth.
  Qed.

  Lemma agree_one n t shadow made tau x : agree n t shadow made tau ->
    agree (n + 1) (bind n [x] 0 t) (bind n [made] 0%nat shadow) (made + 1) (bind made [x] 0 tau).
  Proof.
    intros H. apply (agree_bind n t shadow made tau [made] [x]); auto; try lia.
    - intros. now apply bind_old.
    - constructor; auto; lia.
    - simpl. now rewrite bind_at.
  Qed.

  Lemma total_one made c x tau :
    total (made + 1) c (bind made [x] 0 tau) = total made c tau + value_of (c made) * x.
  Proof. pose proof (total_bind made c tau [x]) as H. simpl in H. rewrite H. ring. Qed.

  (* The reverse pass adds to the cells, weighed with the tangents of their values, as much as the results get. *)
  Lemma reverse_adds again p : forall n e t shadow made finish c tau s,
    scoped p n e -> agree n t shadow made tau ->
    (forall outs made' tau' c', made <= made' -> (forall i, i < made -> tau' i = tau i) ->
       Forall (fun a => a < made') outs -> map tau' outs = forward p n e t ->
       total made' (finish (values p n e) outs made' c') tau' = total made' c' tau' + s) ->
    total made (reverse again p n e shadow made finish c) tau = total made c tau + s.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e t shadow made finish c tau s Hs A F;
      cbn [reverse forward values scoped] in *.
    - destruct (agree_args _ _ _ _ _ _ A Hs). now apply F.
    - destruct Hs as [Ha Hk]. destruct (agree_args _ _ _ _ _ _ A Ha) as [Hb Ht].
      set (xs := map e args) in *. set (v := apply P o xs) in *. set (x := push o xs (map t args)) in *.
      pose proof (agree_one n t shadow made tau x A) as A'.
      match goal with |- context [reverse ?g ?p ?n ?e ?s ?m ?f ?c] => set (c' := reverse g p n e s m f c) end.
      assert (total (made + 1) c' (bind made [x] 0 tau) = total (made + 1) (clear made c) (bind made [x] 0 tau) + s) as H.
      { eapply IH; eauto. intros outs made' tau' c'' L E Ho Hm. apply F; auto; try lia.
        intros i Hi. rewrite E by lia. now apply bind_old. }
      rewrite !total_one, total_clear, clear_new in H by auto. cbn [value_of] in H.
      assert (total made c tau + 0 * x + s = total made c tau + s) as E by ring. rewrite E in H. rewrite <- H.
      destruct (c' made) as [g|]; simpl; [|ring].
      rewrite total_accumulate_all, parts_push, <- Ht by now apply parts_below. reflexivity.
    - destruct Hs as [Hq Hk]. destruct again.
      + set (vs := values q n e) in *. set (ts := forward q n e t) in *.
        assert (length ts = length vs) as L by apply length_forward.
        match goal with |- context [reverse ?g ?p ?n ?e ?s ?m finish ?c] => set (c' := reverse g p n e s m finish c) end.
        assert (total (made + length ts) c' (bind made ts 0 tau)
                = total (made + length ts) (clear made c) (bind made ts 0 tau) + s) as H.
        { unfold c'. rewrite L. apply IH with (t := bind n ts 0 t); auto.
          - rewrite <- L. apply (agree_bind n t shadow made tau); auto; try lia.
            + intros. now apply bind_old.
            + apply Forall_forall. intros i Hi. apply in_seq in Hi. lia.
            + apply map_bind_seq.
          - intros outs made' tau' c'' L' E Ho Hm. apply F; auto; try lia.
            intros i Hi. rewrite E by lia. now apply bind_old. }
        rewrite !total_bind, total_clear, sum2_new, L in H by auto.
        destruct (none _) eqn:N.
        * rewrite sum2_none in H by exact N.
          transitivity (total made c' tau + 0); [ring|]. rewrite H. ring.
        * rewrite IHq with (t := t) (s := sum2 (map value_of (map c' (seq made (length vs)))) ts); auto.
          { rewrite H. ring. }
          intros outs made' tau' c'' _ _ Ho Hm. now rewrite total_seed, Hm.
      + apply IHq with (t := t); auto. intros outs made' tau' c'' L E Ho Hm.
        rewrite <- (length_forward q n e t). apply IH with (t := bind n (forward q n e t) 0 t).
        * rewrite length_forward. exact Hk.
        * eapply agree_bind; eauto.
        * rewrite length_forward. intros outs' made'' tau'' c''' L' E' Ho' Hm'. apply F; auto; try lia.
          intros i Hi. rewrite E' by lia. now apply E.
  Qed.

  Definition empty : cells := fun _ => None.

  (* The vector-Jacobian product: seed the results with the cotangents [ws]; read the cells of the inputs. *)
  Definition pullback (again : bool) p n x (ws : list R) : cells :=
    reverse again p n x (fun i => i) n (fun _ outs _ => seed outs (map Some ws)) empty.

  Lemma agree_inputs n t : agree n t (fun i => i) n t.
  Proof. intros i Hi. auto. Qed.

  Lemma values_some (ws : list R) : map value_of (map Some ws) = ws.
  Proof. rewrite map_map. apply map_id. Qed.

  Theorem reverse_is_transpose again p n x t ws : scoped p n x ->
    total n (pullback again p n x ws) t = sum2 ws (forward p n x t).
  Proof.
    intros Hs. unfold pullback. rewrite (reverse_adds again p n x t _ _ _ _ t (sum2 ws (forward p n x t))); auto.
    - rewrite total_none by auto. ring.
    - apply agree_inputs.
    - intros outs made' tau' c' _ _ Ho Hm. now rewrite total_seed, Hm, values_some.
  Qed.

  (* Each input's cotangent is what forward mode finds along it, weighed. *)
  Corollary reverse_is_forward again p n x ws a : scoped p n x -> a < n ->
    value_of (pullback again p n x ws a) = sum2 ws (forward p n x (unit a)).
  Proof. intros Hs Ha. now rewrite <- total_unit with (n := n), reverse_is_transpose by auto. Qed.
End Reverse.
