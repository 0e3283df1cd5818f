(* The integers as a semiring, and what the models compute on a program over them, for comparison with the code. *)
From Coq Require Export ZArith.
From Effgrad Require Export Taped Delta Continuation Derivative SecondOrder Nesting Effects.

Definition integers : semiring.
Proof.
  refine {| carrier := Z; zero := 0%Z; one := 1%Z; add := Z.add; mul := Z.mul |}. constructor; intros; ring.
Defined.

Definition Arith : signature integers := Arithmetic integers.
Definition plus_op : op Arith := Plus.
Definition times_op : op Arith := Times.

(* The ages of the backpropagators that are called, in order. *)
Fixpoint called (k : nat) (s : machine (R := integers) (P := Arith)) : list nat :=
  match k, pending s with S k, a :: _ => a :: called k (step s) | _, _ => [] end.

Definition inputs (xs : list Z) : nat -> Z := fun i => nth i xs 0%Z.
Definition of_nats : list nat -> list Z := map Z.of_nat.
Definition read (n : nat) (c : cells (R := integers)) : list Z := map (fun a => value_of (c a)) (seq 0 n).

Definition computed (p : prog Arith) (xs us ws : list Z) : list (list Z) :=
  let n := length xs in
  let x := inputs xs in
  [ values p n x;
    forward p n x (inputs us);
    second_order p n x (inputs us) (inputs []);
    read n (pullback false p n x ws);
    read n (pullback true p n x ws);
    read n (taped p n x ws);
    read n (delta p n x ws);
    read n (continuation p n x ws);
    of_nats (called (made_in_all p n x) (start p n x ws));
    of_nats (snd (Continuation.record p n x (fun i => i) n));
    of_nats [length (Effects.operations p n x); Effects.size p n x; made_in_all p n x] ].

(* The textbook example of confused perturbations: the derivative of x (d/dy (x + y)) is 1, and 2 where the inner
   derivative counts the outer one's perturbation as its own. *)
Example no_confused_perturbation :
  let number := Plain (R := integers) in
  let x := Traced 0 (number 3%Z) (number 1%Z) in
  let y := Traced 1 (number 1%Z) (number 1%Z) in
  let inner := tangent 1 (perform (P := Arith) 2 plus_op [x; y]) in
  tangent 0 (perform (P := Arith) 2 times_op [x; inner]) = number 1%Z.
Proof. reflexivity. Qed.
