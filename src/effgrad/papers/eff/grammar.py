"""The grammar of EFF's concrete syntax, for lark; `reading.py` describes each form."""

KEYWORDS = "import|operation|effect|type|define|handler|case|of|handle|shallow|rec|with|return|prj|inj|U|F|Ref"
GRAMMAR = r"""
program: declaration* computation
declarations: declaration*
declaration: "import" NAME                                                  -> imported
     | "operation" NAME ":" type "->" type                                  -> operation
     | "effect" NAME "=" names                                              -> effect
     | "type" NAME "=" type                                                 -> alias
     | "define" definiendum "=" value                                       -> definition
     | "handler" definiendum "=" handler                                    -> definition
definiendum: USE "[" names "]" | NAME
names: (NAME ("," NAME)*)?

?computation: ("\\" | "λ") "(" NAME ":" type ")" "." computation            -> lam
     | "rec" "(" NAME ":" computation_type ")" "." computation               -> recursive
     | NAME "<-" step ";" computation                                       -> to
     | "case" value "of" pattern "->" computation                           -> split
     | "case" value "of" "{" (branch ("|" branch)*)? "}"                    -> case
     | step
branch: NAME pattern "->" computation
?pattern: NAME
     | "(" ")"                                                              -> ignored
     | "(" pattern "," pattern ("," pattern)* ")"                           -> paired
?step: application | "handle" computation "with" handler                    -> handle
     | "shallow" computation "with" handler                                 -> shallow
?application: head | application atom                                       -> app
?head: atom "!"                                                             -> force
     | "return" atom                                                        -> return
     | NAME atom                                                            -> call
     | "<" computation "," computation ">"                                  -> choice
     | "prj" INTEGER head                                                   -> prj
     | "(" computation ")"
?handler: "{" "return" "(" NAME ":" type ")" "->" computation ("|" clause)* "}" -> handler
     | use
clause: NAME pattern NAME "->" computation

?value: atom | "inj" "[" type "]" NAME atom                                 -> inj
?atom: NAME                                                                 -> var
     | use
     | "(" ")"                                                              -> unit
     | "(" value ")"
     | "(" value ("," value)+ ")"                                           -> row 
     | "{" computation "}"                                                  -> thunk
     | "{" "[" names "]" computation "}"                                    -> thunk_of
     | REAL                                                                 -> real
     | INTEGER                                                              -> integer
     | SMOOTH                                                               -> smooth
use: USE "[" (argument ("," argument)*)? "]"
?argument: type

?type: small_type | small_type "*" type                                     -> product
?small_type: NAME                                                           -> variable
     | "1"                                                                  -> unit_type
     | "<" [labelled ("," labelled)*] ">"                                   -> variant
     | "U" "[" names "]" small_computation_type                             -> u
     | "Ref" small_type                                                     -> ref
     | "(" type ")"
labelled: NAME type
?computation_type: small_computation_type
     | small_type_or_product "->" computation_type                          -> arrow
     | small_computation_type "&" small_computation_type                    -> both
?small_type_or_product: type
?small_computation_type: "F" small_type                                     -> f
     | "(" computation_type ")"

SMOOTH.3: /op\[[^\]]*\]/
USE.2: /(?!(U|inj)\[)[a-zA-Z]\w*(?=\[)/
REAL.2: /-?\d+\.\d+([eE][+-]?\d+)?/
INTEGER: /-?\d+/
NAME: /(?!(KEYWORDS)(?![\w']))[a-zA-Z_][\w']*/
%import common.WS
%ignore WS
%ignore /--[^\n]*/
""".replace("KEYWORDS", KEYWORDS)
