/* One case, stage by stage. The service keeps nothing of it: every question carries all that is known. */

let model = null; // as the service describes it
let columns = new Map(); // name -> column, with its feature
let known = { values: {}, unavailable: [] };
let answer = null;
let replaced = null; // the id of the decision before values were changed
let asked = 0; // requests: an answer that is overtaken is passed over

const isKnown = (name) => name in known.values || known.unavailable.includes(name);
const unitOf = (name) => columns.get(name).feature;

async function begin(name) {
  showProblem("");
  known = { values: {}, unavailable: [] };
  answer = null;
  replaced = null;
  try {
    model = await ask(path(name));
  } catch (error) {
    showProblem(error.message);
    return;
  }
  columns = new Map(model.features.flatMap((feature) => feature.columns.map((column) => [column.name, { ...column, feature }])));
  await next();
}

/** Ask what to do now. If the model was replaced in between, the case goes on with the new one, and that is said. */
async function next() {
  const mine = ++asked;
  const question = { ...known, explain: true, replaces: replaced };
  let found;
  try {
    try {
      found = await ask(path(model.name, "/next"), answer ? { ...question, version: answer.version } : question);
    } catch (error) {
      if (error.status !== 409) throw error;
      model = await ask(path(model.name));
      columns = new Map(model.features.flatMap((feature) => feature.columns.map((column) => [column.name, { ...column, feature }])));
      known.unavailable = known.unavailable.filter((name) => columns.has(name));
      known.values = Object.fromEntries(Object.entries(known.values).filter(([name]) => columns.has(name)));
      found = await ask(path(model.name, "/next"), { ...known, explain: true, replaces: replaced });
      showProblem("The model was replaced by a new version. The case goes on with that one, with the values you gave.");
    }
  } catch (error) {
    if (mine === asked) showProblem(error.message);
    return false;
  }
  if (mine !== asked) return false;
  answer = { ...found, at: new Date() };
  if (found.decision) replaced = found.decision.id; // the case counts once, however often it is corrected
  draw();
  return true;
}

/* ---- the question ---- */

const rangeWords = (column) => {
  const unit = column.unit ? ` ${column.unit}` : "";
  if (column.range) return `Training had ${plain(column.range[0])} to ${plain(column.range[1])}${unit}.`;
  if (column.usual) return `Usually ${plain(column.usual[0])} to ${plain(column.usual[1])}${unit}.`;
  return "";
};
const plain = (x) => String(Number(x.toPrecision(4))); // as it can be typed: without commas

const SHOWN = 5; // categories
const categoryWords = ({ categories, n_categories: n }) =>
  n > SHOWN ? `Training had ${categories.slice(0, SHOWN).join(", ")} and ${plural(n - SHOWN, "other")}.` : "";

const hintWords = (column) => (column.type === "number" ? rangeWords(column) : categoryWords(column));

const isFlag = ({ type, range, whole }) => type === "number" && whole && range && range[0] === 0 && range[1] === 1;
const choicesOf = (column) => {
  if (isFlag(column)) return ["0", "1"];
  return column.type === "category" && column.n_categories <= 6 ? column.categories : null;
};
const LONG = 14; // characters of a choice that has a line of its own on a phone
const priceWords = (price) => (price ? money(price) : "free");

/** The input of a column: choices, a number with its unit, or text with suggestions; and "not available". */
function field(column, k, price) {
  const id = `field-${k}`;
  const hint = h("p", { class: "hintline", id: `${id}-hint` }, choicesOf(column) ? "" : hintWords(column));
  const error = h("p", { class: "error", id: `${id}-error`, hidden: true });
  const missing = h("input", { type: "checkbox", id: `${id}-missing`, "data-missing": column.name });
  const choices = choicesOf(column);
  const before = known.values[column.name];
  let entry;
  if (choices) {
    const radios = choices.map((value, c) =>
      h("label", null, h("input", { type: "radio", name: id, id: c ? null : id, value, checked: before !== undefined && String(before) === value }), value));
    const kind = choices.some((value) => value.length > LONG) ? "choices long" : "choices";
    entry = h("div", { class: kind, role: "radiogroup", "aria-labelledby": `${id}-name`, "aria-describedby": `${id}-hint ${id}-error` }, radios);
  } else {
    const numeric = column.type === "number";
    const input = h("input", {
      type: "text", id, inputmode: numeric ? "decimal" : null, // a number field drops a comma: 38,1 would be 381
      list: numeric ? null : `${id}-list`, maxlength: numeric ? null : 4096, "aria-describedby": `${id}-hint ${id}-error`,
      value: before === undefined ? null : String(before),
    });
    input.addEventListener("input", () => drawOdd(column, input, hint));
    const list = numeric ? null : h("datalist", { id: `${id}-list` }, (column.categories || []).map((value) => h("option", { value })));
    entry = [input, list, column.unit ? h("span", { class: "unit" }, column.unit) : null];
  }
  missing.checked = known.unavailable.includes(column.name) || before === null;
  const inputs = () => box.querySelectorAll("input:not([data-missing])");
  const sync = () => {
    for (const input of inputs()) input.disabled = missing.checked;
  };
  missing.addEventListener("change", sync);
  const said = [column.description, price === undefined ? null : `(${priceWords(price)})`].filter(Boolean).join(" ");
  const about = said ? h("span", { class: "about" }, ` ${said}`) : null;
  const name = choices
    ? h("span", { class: "name", id: `${id}-name` }, column.name, about)
    : h("label", { class: "name", for: id }, column.name, about);
  const box = h(
    "div", { class: "field", "data-column": column.name },
    name,
    h("div", { class: "entry" }, entry, h("label", { class: "missing" }, missing, "not available")),
    hint, error,
  );
  sync();
  return box;
}

/** What is wrong with the text of a number; nothing if it is one. */
function wrongNumber(text) {
  const plainer = text.replaceAll(",", "");
  if (/^[+-]?[1-9]\d{0,2},\d{3}$/.test(text)) return `Write ${plainer} or ${text.replace(",", ".")}: the comma may mean either.`;
  if (/^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(text)) return `Write ${plainer}, without commas.`;
  if (/^[+-]?\d+,\d+$/.test(text)) return `Write ${text.replace(",", ".")}, with a point.`;
  return Number.isFinite(Number(text)) ? "" : "This is not a number.";
}

/** Whether a number is beyond what training had: its range, or four standard deviations. */
function isOdd({ range, usual }, value) {
  if (!Number.isFinite(value) || !(range || usual)) return false;
  const more = range ? 0 : (usual[1] - usual[0]) / 2;
  const [low, high] = range || usual;
  return value < low - more || value > high + more;
}

/** Whether a category is one that training did not have; a list that is cut says nothing. */
const isUnseen = ({ categories, n_categories: n }, text) => n === categories.length && !categories.includes(text);

/** Say if a value is none that training had; it is taken all the same. */
function drawOdd(column, input, hint) {
  const text = input.value.trim();
  const odd = text !== "" && (column.type === "number" ? isOdd(column, Number(text)) : isUnseen(column, text));
  hint.classList.toggle("odd", odd);
  hint.textContent = odd ? `Is that right? ${hintWords(column)}` : hintWords(column);
}

function drawQuestion() {
  const { acquire } = answer;
  const features = [...new Map(acquire.columns.map((name) => [unitOf(name).name, unitOf(name)])).values()];
  byId("question-h").textContent = `Stage ${acquire.stage + 1} of ${acquire.stages}: ${acquire.features.join(", ")}`;
  const several = acquire.features.length > 1;
  byId("question-lead").textContent = acquire.price
    ? `${several ? "Together they cost" : "It costs"} ${money(acquire.price)}.`
    : `${several ? "They cost" : "It costs"} nothing.`;
  if (acquire.saves !== undefined) byId("question-lead").textContent += ` Buying is expected to save ${money(acquire.saves)}.`;
  let k = 0;
  const groups = features.map((feature) => {
    const wanted = feature.columns.filter((column) => acquire.columns.includes(column.name));
    const single = wanted.length === 1 && wanted[0].name === feature.name;
    const fields = wanted.map((column) => field(column, k++, single && several ? feature.price : undefined));
    return single ? fields : h("fieldset", { class: "panel-of" }, h("legend", null, `${feature.name} (${priceWords(feature.price)})`), fields);
  });
  const last = acquire.stage === acquire.stages - 1;
  byId("form").replaceChildren(
    ...groups.flat(),
    h("div", { class: "actions" }, h("button", { type: "submit", class: "main" }, last ? "Decide" : "Continue")),
  );
  byId("form").hidden = false;
  byId("decision").hidden = true;
  const first = byId("form").querySelector("input:not(:disabled)");
  if (first) first.focus({ preventScroll: true });
}

/** Read the form; false if something is left open. */
function readForm() {
  const read = { values: {}, unavailable: [] };
  let first = null;
  for (const box of byId("form").querySelectorAll(".field")) {
    const { column: name } = box.dataset;
    const column = columns.get(name);
    const error = box.querySelector(".error");
    let said = "";
    if (box.querySelector("[data-missing]").checked) read.unavailable.push(name);
    else {
      const chosen = box.querySelector("input[type=radio]:checked");
      const input = box.querySelector("input[type=text]");
      const text = chosen ? chosen.value : input ? input.value.trim() : "";
      if (text === "") said = choicesOf(column) ? "Choose one, or say that it is not available." : "Fill it in, or say that it is not available.";
      else if (column.type === "number" && wrongNumber(text)) said = wrongNumber(text);
      else read.values[name] = column.type === "number" ? Number(text) : text;
    }
    box.classList.toggle("wrong", Boolean(said));
    error.hidden = !said;
    error.textContent = said;
    if (said && !first) first = box.querySelector("input:not(:disabled)");
  }
  if (first) {
    first.focus();
    return null;
  }
  return read;
}

async function submit(event) {
  event.preventDefault();
  const read = readForm();
  if (!read || byId("form").getAttribute("aria-busy") === "true") return;
  const before = known;
  known = {
    values: { ...Object.fromEntries(Object.entries(known.values).filter(([name]) => !read.unavailable.includes(name))), ...read.values },
    unavailable: [...known.unavailable.filter((name) => !(name in read.values) && !read.unavailable.includes(name)), ...read.unavailable],
  };
  byId("form").setAttribute("aria-busy", "true");
  showProblem("");
  if (!(await next())) known = before;
  byId("form").removeAttribute("aria-busy");
}

/** Ask the columns of a stage again; what was given stays in the form. */
function change(stage) {
  const names = model.stages[stage].columns;
  const prefilled = { values: { ...known.values }, unavailable: [...known.unavailable] };
  answer = { ...answer, decision: undefined, acquire: {
    features: model.stages[stage].features, columns: names, price: model.stages[stage].price, stage, stages: model.stages.length,
    paid: stage ? model.stages[stage - 1].paid : 0,
  } };
  known = prefilled;
  drawQuestion();
  byId("question-h").focus();
}

/* ---- the decision ---- */

/** Of a model with prices of errors: the expected price of each label, and of no answer, the least first. */
function expectedPrices() {
  const { prices, no_answer: none } = model.errors;
  const share = new Map(answer.explanation.probabilities.map(({ label, probability }) => [label, probability]));
  const expected = (priceOf) => model.classes.reduce((sum, truth, t) => sum + share.get(truth) * priceOf(t), 0);
  const labels = model.classes.map((label, k) => ({ label, price: expected((t) => prices[t][k]) }));
  if (none) labels.push({ label: null, price: expected((t) => none[t]) });
  return labels.sort((a, b) => a.price - b.price);
}

const priceOf = (confidence) => model.errors.largest * (1 - confidence);

/** How good the answer is: its probability, or if errors have prices, what it is expected to cost. */
function verdictWords(decision, explanation) {
  if (model.errors) {
    const others = expectedPrices().filter(({ label }) => label !== decision.label)
      .map(({ label, price }) => `${label === null ? "no answer" : `“${label}”`} ${money(price)}`);
    return `Errors are expected to cost ${money(decision.expected_price)}; the alternatives: ${others.join(", ")}.`;
  }
  const { runner_up: second } = explanation;
  if (decision.label !== null) return `Confidence ${percent(decision.confidence)}. The runner-up is “${second.label}”, with ${percent(second.probability)}.`;
  const { needed } = explanation.stages.at(-1);
  return `“${decision.best_guess}” has ${percent(decision.confidence)}, “${second.label}” has ${percent(second.probability)}. ` +
    (needed === null ? "No confidence would be enough for a label." : `A label needs ${percent(needed)}.`);
}

const isEmpty = () => model.stages.every((stage) => !stage.columns.length);

const isNothing = ({ log_odds: x }) => x !== null && Math.abs(x) < 0.005;

const contributionWords = (feature, label) => {
  const share = `${percent(feature.without)} without it`;
  if (feature.log_odds === null) return share;
  if (isNothing(feature)) return `no difference; ${share}`;
  return `${feature.log_odds > 0 ? "for" : "against"} ${label}; ${share}`;
};

function drawReasons(explanation) {
  const [top] = explanation.probabilities;
  if (!explanation.features.length) return [];
  const most = Math.max(...explanation.features.map(({ log_odds }) => Math.abs(log_odds || 0)), 1e-9);
  const idle = explanation.features.filter(isNothing).map(({ feature }) => feature);
  const items = explanation.features.filter((feature) => !isNothing(feature)).map((feature) => {
    const bar = h("i", { class: feature.log_odds < 0 ? "against" : "for" });
    bar.style.width = `${(50 * Math.abs(feature.log_odds || 0)) / most}%`;
    return h(
      "li", null,
      h("div", { class: "line" }, h("span", null, feature.feature), h("span", null, contributionWords(feature, String(top.label)))),
      h("div", { class: "lean", "aria-hidden": "true" }, bar),
    );
  });
  return [
    h("h2", null, "Why"),
    h("p", { class: "lead" }, `What each feature contributed to “${top.label}”${model.errors ? `, the most probable class with ${percent(top.probability)}` : ""}, against “${explanation.runner_up.label}”: the difference that it makes to this case if its value is not available.`),
    h("ul", { class: "reasons" }, items),
    idle.length ? h("p", { class: "idle" }, `No difference: ${idle.join(", ")}.`) : "",
  ];
}

function promiseWords({ promise }) {
  if (!promise) return null;
  return h("div", { class: "promise" }, promise.text.map((line) => h("p", null, line)));
}

function drawDecision() {
  const { decision, explanation } = answer;
  const sure = decision.label !== null;
  byId("question-h").textContent = sure ? "Decision" : "No label";
  byId("question-lead").textContent = isEmpty()
    ? "This model buys nothing: every case gets this answer."
    : `After stage ${decision.stage + 1} of ${model.stages.length}. ${money(decision.cost)} paid.`;
  const card = sure
    ? h(
        "div", { class: "verdict-card" },
        h("p", { class: "label" }, String(decision.label)),
        h("p", null, verdictWords(decision, explanation)),
      )
    : h(
        "div", { class: "verdict-card unsure" },
        h("p", { class: "label" }, "inconclusive"),
        h("p", null, verdictWords(decision, explanation)),
      );
  byId("decision").replaceChildren(
    card,
    ...[promiseWords(decision)].filter(Boolean),
    ...drawReasons(explanation),
    h("p", { class: "record" }, `${caseWords()}. ${timeWords()}. Id: ${decision.id}`),
    h(
      "div", { class: "actions" },
      h("button", { type: "button", class: "main", id: "new-case", onclick: () => begin(model.name) }, "New case"),
      h("button", { type: "button", class: "quiet", id: "copy", onclick: copyText }, "Copy as text"),
      h("button", { type: "button", class: "quiet", onclick: () => print() }, "Print"),
    ),
    data.outcomes ? truthForm(decision) : "",
  );
  byId("form").hidden = true;
  byId("decision").hidden = false;
  byId("question-h").focus({ preventScroll: true });
}

/** When the truth is known, it can be sent at once. */
function truthForm(decision) {
  const labels = model.classes.map((label, k) => h("option", { value: k }, String(label)));
  const select = h("select", { id: "truth", required: true }, h("option", { value: "" }, "choose"), labels);
  const said = h("p", { role: "status" });
  const button = h("button", { type: "submit", class: "quiet" }, "Send");
  const form = h("form", null, h("label", { for: "truth" }, "True label"), select, button, said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { stored } = await ask(path(model.name, "/outcomes"), { outcomes: [{ id: decision.id, truth: model.classes[+select.value] }] });
      said.textContent = stored ? "Stored." : "It was stored before.";
      button.disabled = select.disabled = true;
    } catch (error) {
      said.textContent = error.message;
    }
  });
  return h("div", { class: "truth" }, h("h2", null, "The truth, if you know it"), h("p", { class: "lead" }, `Or send it later, with the id ${decision.id}.`), form);
}

const given = (name) => (name in known.values && known.values[name] !== null ? String(known.values[name]) : "not available");

const caseWords = () => `EMSCO case, model ${model.name}, version ${answer.version}`;
const timeWords = () => `Decided ${answer.at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
const unseenWords = () => `Training did not have the value given for ${answer.unseen.join(", ")}.`;

/** The case as text, for a record or a mail. */
function caseText() {
  const { decision, explanation } = answer;
  const lines = [
    caseWords(),
    timeWords(),
    decision.label === null ? `No label; best guess: ${decision.best_guess}` : `Decision: ${decision.label}`,
    verdictWords(decision, explanation),
    `After stage ${decision.stage + 1} of ${model.stages.length}, ${money(decision.cost)} paid`,
    "",
  ];
  model.stages.slice(0, decision.stage + 1).forEach((stage, j) => {
    const { label, confidence } = explanation.stages[j];
    const worth = model.errors ? `errors ${money(priceOf(confidence))}` : percent(confidence);
    lines.push(`Stage ${j + 1}, price ${money(stage.price)}: ${label}, ${worth}`);
    for (const name of stage.columns) {
      const { unit } = columns.get(name);
      lines.push(`  ${name}: ${given(name)}${unit && given(name) !== "not available" ? ` ${unit}` : ""}`);
    }
  });
  lines.push("", "Contributions:");
  for (const feature of explanation.features) lines.push(`  ${feature.feature}: ${contributionWords(feature, String(explanation.probabilities[0].label))}`);
  if (answer.unseen) lines.push("", unseenWords());
  if (decision.promise) lines.push("", ...decision.promise.text);
  lines.push("", `Id: ${decision.id}`);
  return lines.join("\n").replaceAll("\u00a0", " ");
}

async function copyText() {
  const text = byId("text");
  text.textContent = caseText();
  text.hidden = false;
  try {
    await navigator.clipboard.writeText(text.textContent);
    byId("copy").textContent = "Copied";
  } catch {
    byId("copy").textContent = "Copy it below"; // browsers allow the clipboard on this machine and over HTTPS only
    text.focus();
  }
}

/* ---- so far ---- */

/** After each stage, the confidence and what a label needs there; if errors have prices, what they are expected to cost. */
function drawPath() {
  const priced = Boolean(model.errors);
  const value = (confidence) => (confidence === null ? null : priced ? priceOf(confidence) : confidence);
  const stages = answer.explanation.stages.map((stage) => ({ ...stage, at: value(stage.confidence), bar: value(stage.needed) }));
  const n = model.stages.length;
  byId("path-figure").hidden = !stages.length || isEmpty();
  if (byId("path-figure").hidden) return;
  const width = Math.max(byId("path").clientWidth, 260);
  const height = 210;
  const box = { left: 46, right: width - 16, top: 32, bottom: height - 46 };
  const ats = stages.map(({ at }) => at);
  const ends = priced ? [0, Math.max(...ats, ...stages.map(({ bar }) => bar || 0))] : [Math.min(1 / model.classes.length, ...ats), 1];
  const x = (j) => (n > 1 ? box.left + 22 + ((box.right - box.left - 44) * j) / (n - 1) : (box.left + box.right) / 2);
  const y = scale(ends, box.bottom, box.top, 0.04);
  const ruler = Object.assign((value) => x(value - 1), { low: 1, high: 1 }); // ticks of stages are drawn below
  const ticksOf = Array.from({ length: n }, (_, j) =>
    n <= 8 || j % Math.ceil(n / 8) === 0 ? s("text", { class: "tick", x: x(j), y: box.bottom + 18, "text-anchor": "middle" }, String(j + 1)) : null);
  const half = n > 1 ? Math.min((box.right - box.left - 44) / (n - 1) / 2, 26) : 40;
  const bars = stages.map(({ bar }, j) =>
    bar === null || (!priced && bar <= ends[0]) || (priced && j === n - 1) ? null : s("line", { class: "needed", x1: x(j) - half, x2: x(j) + half, y1: y(bar), y2: y(bar) }));
  const points = stages.map(({ at }, j) => `${j ? "L" : "M"}${x(j).toFixed(1)} ${y(at).toFixed(1)}`).join("");
  const isCrossed = (place, bar) => bar !== null && Math.abs(y(bar) - place + 4) < 9; // a text by a dashed line
  const marks = stages.map(({ at, bar, label }, j) => {
    const [above, below] = [y(at) - 12, y(at) + 24];
    const fits = [above, below, below + 14].filter((place) => place > box.top + 4 && place < box.bottom);
    const place = fits.find((spot) => !isCrossed(spot, bar)) ?? above;
    return [
      s("circle", { class: "stop", r: 6, cx: x(j), cy: y(at) }),
      s("text", { class: "at", x: x(j), y: place, "text-anchor": "middle" }, cut(String(label), 12)),
    ];
  });
  const text = priced ? money : percent;
  const words = stages.map(({ at, label }, j) => `stage ${j + 1}: ${label}, ${text(at)}`).join("; ");
  const title = priced ? "expected price of errors" : "confidence in the most probable class";
  byId("path").replaceChildren(
    canvas(
      width, height, { role: "img", "aria-label": `${priced ? "Expected price of errors" : "Confidence"} after each stage. ${words}` },
      frame(box, ruler, y, { x: "stage", y: title, xText: () => "", yText: priced ? number : wholePercent }),
      ticksOf, bars, s("path", { class: "step", d: points }), marks.flat(),
    ),
  );
  const note = priced ? "At or below a dashed line, a case gets its answer." : "The dashed lines are what a label needs.";
  byId("path-note").textContent = bars.some(Boolean) ? note : "";
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function drawSoFar() {
  const { acquire, decision } = answer;
  const paid = decision ? decision.cost : acquire.paid;
  byId("paid").textContent = money(paid);
  byId("paid-of").textContent = `paid${model.price_of_everything ? `; everything together costs ${money(model.price_of_everything)}` : ""}`;
  drawPath();
  const n = isEmpty() ? 0 : answer.explanation.stages.length;
  byId("given").replaceChildren(...model.stages.slice(0, n).map((stage, j) =>
    h(
      "li", null,
      h(
        "div", { class: "head" }, h("b", null, `Stage ${j + 1}`),
        h("button", { type: "button", class: "link", "aria-label": `Change the values of stage ${j + 1}`, onclick: () => change(j) }, "Change"),
      ),
      h("dl", null, stage.columns.flatMap((name) => {
        const { unit } = columns.get(name);
        const missing = given(name) === "not available";
        return [h("dt", null, name), h("dd", { class: missing ? "none" : null }, missing || !unit ? given(name) : `${given(name)} ${unit}`)];
      })),
    )));
  byId("again").hidden = Boolean(decision) || (!Object.keys(known.values).length && !known.unavailable.length);
}

/** Say if a category is one that training did not have; it is taken all the same, as one of which nothing is known. */
function drawUnseen() {
  const { unseen } = answer;
  byId("unseen").hidden = !unseen;
  byId("unseen").textContent = unseen ? `${unseenWords()} Is it right?` : "";
}

function draw() {
  byId("text").hidden = true;
  drawSoFar();
  drawUnseen();
  if (answer.decision) drawDecision();
  else drawQuestion();
}

startTheme();
startModels(begin);
byId("form").addEventListener("submit", submit);
byId("again").addEventListener("click", () => begin(model.name));
addEventListener("resize", () => answer && drawPath());
if (data.models.length) begin(chosenModel());
else showProblem("No model is loaded yet. Put a model file where the service looks for it.");
