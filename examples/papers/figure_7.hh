(* Two phases: what is before a `continue` runs while the client runs, what is after it when the client has finished,
   the newest first. Operands are evaluated from the right. After de Vilhena and Pottier 2023, figure 7. *)
let client = fun () -> perform (Ask 2) + perform (Ask 7) in
handle client () with
| effect Ask x, k ->
    print ("asked", x);
    let y = continue k (x + 1) in
    print ("answered", x);
    y
| y -> print ("finished", y); y
end
