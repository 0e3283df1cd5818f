(* Reverse modes with a tape: names instead of references, and one walk back along the tape.

   Taped mode and delta mode walk in the same way. They differ in what they write down for an operation, [T], and in how
   they pass a cotangent on from it. *)
From Effgrad Require Export Reverse.

Section Walk.
  Context {R : semiring} {P : signature R}.
  Add Ring R : (laws R).
  Local Open Scope R.
  Local Notation cell := (@cell R).
  Local Notation cells := (@cells R).
  Implicit Types (n made top : nat) (e t tau : nat -> R) (shadow : nat -> nat) (c : cells).

  (* [write targets partials]: what is kept of an operation; [pass name it g c]: its part of the reverse pass. *)
  Variable T : Type.
  Variable write : list nat -> list R -> T.
  Variable pass : nat -> T -> R -> cells -> cells.
  Hypothesis pass_adds : forall name targets ps g c tau, Forall (fun a => a < name) targets ->
    total name (pass name (write targets ps) g c) tau = total name c tau + g * sum2 ps (map tau targets).

  (* What the tape holds at a name. A region's [again top given] records it at the end of the tape, [top], walks back
     over that with the cotangents [given] to its results, and forgets it. *)
  Inductive entry :=
    | Leaf
    | Operation (it : T)
    | Region (names : list nat) (again : nat -> list cell -> cells -> cells).

  (* The walk from the end of the tape down to name [first]; [top] is the length of the whole tape. *)
  Fixpoint walk (tape : list entry) (first top : nat) c : cells :=
    match tape with
    | [] => c
    | entry :: tape =>
        let c := walk tape (first + 1) top c in
        match entry with
        | Leaf => c
        | Operation it => match c first with None => c | Some g => pass first it g c end
        | Region names again => let given := map c names in if none given then c else again top given c
        end
    end.

  (* The entries from name [made] on, and the names of the results. *)
  Fixpoint record (p : prog P) n e shadow made : list entry * list nat :=
    match p with
    | Ret ys => ([], map shadow ys)
    | Do o args k =>
        let xs := map e args in
        let v := apply P o xs in
        let (tape, outs) := record (k v) (n + 1) (bind n [v] 0 e) (bind n [made] 0%nat shadow) (made + 1) in
        (Operation (write (map shadow args) (partials o xs)) :: tape, outs)
    | Ck q k =>
        let vs := values q n e in
        let m := length vs in
        let names := seq (made + 1) m in
        let (tape, outs) := record (k vs) (n + m) (bind n vs 0 e) (bind n names 0%nat shadow) (made + 1 + m) in
        let again top given c :=
          let (part, results) := record q n e shadow top in
          walk part top (top + length part) (seed results given (clear top c)) in
        (Region names again :: repeat Leaf m ++ tape, outs)
    end.

  Lemma walk_leaves tape top m : forall first c,
    walk (repeat Leaf m ++ tape) first top c = walk tape (first + m) top c.
  Proof.
    induction m; intros; simpl; [now rewrite Nat.add_0_r|]. rewrite IHm. f_equal. lia.
  Qed.

  Lemma total_beyond n made c tau : made <= n -> (forall i, made <= i -> tau i = 0) -> total n c tau = total made c tau.
  Proof.
    intros L H. unfold total. induction n; [now replace made with 0%nat by lia|]. simpl. destruct (Nat.eq_dec made (S n)) as [->|]; auto.
    rewrite IHn, H by lia. ring.
  Qed.

  (* Tangents for all names on the tape, of which the walk is the transpose. *)
  Lemma walk_is_transpose p : forall n e t shadow made tau, scoped p n e -> agree n t shadow made tau ->
    let (tape, outs) := record p n e shadow made in
    exists tau', (forall i, i < made -> tau' i = tau i) /\
      Forall (fun a => a < made + length tape) outs /\ map tau' outs = forward p n e t /\
      forall top c, made + length tape <= top -> total made (walk tape made top c) tau = total (made + length tape) c tau'.
  Proof.
    induction p as [ys|o args k IH|q IHq k IH]; intros n e t shadow made tau Hs A; cbn [record forward scoped] in *.
    - destruct (agree_args _ _ _ _ _ _ A Hs). exists tau. simpl. rewrite Nat.add_0_r. repeat split; auto.
    - destruct Hs as [Ha Hk]. destruct (agree_args _ _ _ _ _ _ A Ha) as [Hb Ht].
      set (xs := map e args) in *. set (v := apply P o xs) in *. set (x := push o xs (map t args)) in *.
      specialize (IH v _ _ _ _ _ _ Hk (agree_one n t shadow made tau x A)).
      destruct (record _ _ _ _ _) as [tape outs]. destruct IH as (tau' & E & Ho & Hm & W).
      exists tau'. cbn [length walk]. rewrite <- Nat.add_assoc in *. cbn [Nat.add] in *. split; [|split; [|split]]; auto.
      { intros i Hi. rewrite E by lia. now apply bind_old. }
      intros top c L. specialize (W top c L). rewrite total_one in W. rewrite <- W.
      set (c' := walk _ _ _ _) in *. destruct (c' made) as [g|]; simpl; [|ring].
      rewrite pass_adds, <- Ht by auto. reflexivity.
    - destruct Hs as [Hq Hk]. set (vs := values q n e) in *. set (ts := forward q n e t) in *.
      assert (length ts = length vs) as L by apply length_forward.
      set (tau1 := bind made (0 :: ts) 0 tau).
      assert (agree (n + length vs) (bind n ts 0 t) (bind n (seq (made + 1) (length vs)) 0%nat shadow)
                (made + 1 + length vs) tau1) as A1.
      { rewrite <- L. apply (agree_bind n t shadow made tau); auto; try lia.
        - intros. now apply bind_old.
        - apply Forall_forall. intros i Hi. apply in_seq in Hi. lia.
        - pose proof (map_bind_seq made (0 :: ts) 0 tau) as H. cbn in H. injection H as _ H.
          now rewrite Nat.add_1_r. }
      specialize (IH vs _ _ _ _ _ _ Hk A1).
      destruct (record (k vs) _ _ _ _) as [tape outs]. destruct IH as (tau' & E & Ho & Hm & W).
      exists tau'. cbn [length walk]. rewrite app_length, repeat_length.
      replace (made + S (length vs + length tape))%nat with (made + 1 + length vs + length tape)%nat by lia.
      split; [|split; [|split]]; auto.
      { intros i Hi. rewrite E by lia. now apply bind_old. }
      intros top c Lt. specialize (W top c Lt). rewrite walk_leaves. set (c' := walk tape _ _ _) in *.
      assert (total made c' tau + sum2 (map value_of (map c' (seq (made + 1) (length vs)))) ts
              = total (made + 1 + length vs + length tape) c tau') as H.
      { rewrite <- W. replace (made + 1 + length vs)%nat with (made + length (zero :: ts))%nat by (simpl; lia).
        unfold tau1. rewrite total_bind. simpl. rewrite L, (Nat.add_1_r made). ring. }
      rewrite <- H. destruct (none _) eqn:N.
      + rewrite sum2_none by exact N. ring.
      + set (tau0 := fun i => if i <? made then tau i else 0).
        assert (agree n t shadow top tau0) as A0.
        { intros i Hi. destruct (A i Hi). unfold tau0. split; [lia|]. destruct (Nat.ltb_spec (shadow i) made); auto. lia. }
        specialize (IHq _ _ _ _ _ _ Hq A0). destruct (record q _ _ _ _) as [part results].
        destruct IHq as (tau'' & E' & Ho' & Hm' & W').
        assert (forall d, total made d tau = total top d tau0) as Z.
        { intros d. rewrite (total_beyond top made d tau0) by
            (try lia; intros i Hi; unfold tau0; destruct (Nat.ltb_spec i made); auto; lia).
          apply total_ext; auto. intros i Hi. unfold tau0. destruct (Nat.ltb_spec i made); auto. lia. }
        rewrite !Z, W', total_seed, Hm' by auto. fold ts. f_equal.
        assert (forall m, total (top + m) (clear top c') tau'' = total top c' tau0) as Y; auto.
        induction m; [rewrite Nat.add_0_r, total_clear by lia; apply total_ext; auto|].
        rewrite Nat.add_succ_r. unfold total in *. cbn [dot]. rewrite IHm, clear_new by lia. simpl. ring.
  Qed.

  (* Inputs have the names 0 to n-1; their entries are leaves. *)
  Definition back p n x (ws : list R) : cells :=
    let (tape, outs) := record p n x (fun i => i) n in
    walk (repeat Leaf n ++ tape) 0 (n + length tape) (seed outs (map Some ws) empty).

  Theorem back_is_transpose p n x t ws : scoped p n x -> total n (back p n x ws) t = sum2 ws (forward p n x t).
  Proof.
    intros Hs. unfold back. pose proof (walk_is_transpose p n x t (fun i => i) n t Hs (agree_inputs n t)) as H.
    destruct (record _ _ _ _ _) as [tape outs]. destruct H as (tau' & _ & Ho & Hm & W).
    rewrite walk_leaves, W, total_seed, Hm, values_some, total_none by auto. ring.
  Qed.
End Walk.
