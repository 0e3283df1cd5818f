"use strict";
const modes = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const usual = modes.find((one) => one.mode === "reverse") || modes[0];
let mode = usual, step = 0;

function element(tag, text, properties = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  return made;
}

/* What is known after the steps up to now: values by activation, cotangents, and the handlers that run. */
function stateUntil(last) {
  const values = new Map(), cotangents = new Map();
  for (const { kind, name, by, call, value, keeps, cotangent, shares = [] } of mode.steps.slice(0, last + 1)) {
    if (kind === "input" || kind === "apply") values.set(name, { by, call: call || kind, value, keeps });
    if (cotangent) cotangents.set(name, cotangent);
    for (const share of shares) cotangents.set(share.to, share.total);
  }
  return { values, cotangents };
}

function showProgram(current) {
  at("program").replaceChildren(...mode.sources.flatMap(({ file, first, lines }, place) => {
    const text = element("pre", "");
    text.append(...lines.map((line, i) => {
      const here = current.line && current.line[0] === place && current.line[1] === first + i;
      return element("span", line, { "data-number": first + i, ...(here ? { "aria-current": "step" } : {}) });
    }));
    return [element("p", file, { class: "file" }), text];
  }));
}

function showValues(current) {
  const { values, cotangents } = stateUntil(step);
  const given = new Set([...(current.from || []), ...(current.shares || []).map((share) => share.to)]);
  const tables = mode.activations.map((activation, by) => {
    const rows = [...values].filter(([, value]) => value.by === by);
    if (!rows.length) return null;
    const table = element("table", "");
    table.append(element("caption", `of ${activation}`));
    const head = table.createTHead().insertRow();
    for (const title of ["name", "operation", "value", "kept with it", "cotangent"])
      head.append(element("th", title, { scope: "col" }));
    const body = table.createTBody();
    for (const [name, { call, value, keeps }] of rows) {
      const row = body.insertRow();
      if (name === current.name) row.setAttribute("aria-current", "true");
      else if (given.has(name)) row.className = "used";
      row.append(element("th", name, { scope: "row" }));
      for (const text of [call, value, keeps, cotangents.get(name)]) row.append(element("td", text || ""));
    }
    return table;
  });
  at("values").replaceChildren(...tables.filter(Boolean));
  const pairs = Object.entries(current.pairs || {}).map(([pair, value]) => element("li", `${pair}: ${value}`));
  const list = element("ul", "");
  list.append(...pairs);
  at("pairs").replaceChildren(...(pairs.length ? [element("h2", "Second derivatives held, by pairs"), list] : []));
}

function show() {
  const current = mode.steps[step], end = mode.steps.length - 1;
  at("place").max = end;
  at("place").value = step;
  at("place").setAttribute("aria-valuetext", `step ${step + 1} of ${end + 1}, ${current.say}`);
  at("count").textContent = `${step + 1} of ${end + 1}`;
  at("first").disabled = at("back").disabled = step === 0;
  at("last").disabled = at("forward").disabled = step === end;
  at("phase").textContent = `${current.phase} pass`;
  at("say").textContent = current.say;
  at("details").replaceChildren(...(current.details || []).map((text) => element("li", text)));
  at("result").textContent = mode.results.join(", ");
  at("handlers").replaceChildren(...current.handlers.map((number) => element(
    "li", mode.activations[number], number === current.by ? { "aria-current": "true" } : {})));
  showProgram(current);
  showValues(current);
  history.replaceState(null, "", `#${mode.mode}/${step + 1}`);
}

function go(place) {
  step = Math.max(0, Math.min(mode.steps.length - 1, place));
  show();
}

function choose(name, place = 0) {
  mode = modes.find((one) => one.mode === name) || usual;
  at("mode").value = mode.mode;
  go(place);
}

function goToAddress() {
  const [name, number] = location.hash.slice(1).split("/");
  choose(name, (parseInt(number, 10) || 1) - 1);
}

const moves = { ArrowLeft: () => go(step - 1), ArrowRight: () => go(step + 1), Home: () => go(0), End: () => go(Infinity) };
document.addEventListener("keydown", (event) => {
  const elsewhere = event.target.id === "mode" || event.ctrlKey || event.altKey || event.metaKey;
  if (elsewhere || !(event.key in moves)) return;
  event.preventDefault();
  moves[event.key]();
});
at("first").onclick = moves.Home;
at("back").onclick = moves.ArrowLeft;
at("forward").onclick = moves.ArrowRight;
at("last").onclick = moves.End;
at("place").oninput = () => go(Number(at("place").value));
at("mode").append(...modes.map(({ mode }) => element("option", mode, { value: mode })));
at("mode").onchange = () => choose(at("mode").value);
window.onhashchange = goToAddress;
goToAddress();
