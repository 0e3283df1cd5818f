(* Effect-based reverse mode: de Vilhena and Pottier 2023, figure 9. An expression is a function of a dictionary
   (zero, one, add, mul) and of a number; `diff` takes one to its derivative, and may be iterated. *)
let diff = fun e -> fun (zero, one, add, mul) -> fun n ->
  (* A vertex: the constants, or a value with the cell that collects its derivative. *)
  let mk = fun v -> Var (v, ref zero) in
  let get_v = fun u -> match u with O -> zero | I -> one | Var (v, _) -> v end in
  let get_d = fun u -> match u with Var (_, d) -> !d end in
  let update = fun u -> fun i -> match u with O -> () | I -> () | Var (_, d) -> d := add (!d) i end in
  let dict = (O, I, fun a -> fun b -> perform (Add (a, b)), fun a -> fun b -> perform (Mul (a, b))) in
  let x = mk n in
  handle e dict x with
  | effect Add (a, b), k ->
      let u = mk (add (get_v a) (get_v b)) in
      continue k u;
      update a (get_d u);
      update b (get_d u)
  | effect Mul (a, b), k ->
      let u = mk (mul (get_v a) (get_v b)) in
      continue k u;
      update a (mul (get_d u) (get_v b));
      update b (mul (get_d u) (get_v a))
  | y -> update y one
  end;
  get_d x
in
let integers = (0, 1, fun a -> fun b -> a + b, fun a -> fun b -> a * b) in
(* (x + 1)^3 and its first three derivatives at 4: 125, 75, 30, 6 *)
let e = fun (_, one, add, mul) -> fun x -> let y = add x one in mul y (mul y y) in
(e integers 4, diff e integers 4, diff (diff e) integers 4, diff (diff (diff e)) integers 4)
