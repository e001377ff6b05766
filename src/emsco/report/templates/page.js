/* The sections of the page, and the selected point. */

const data = JSON.parse(byId("data").textContent);
const { points, units } = data;
const hasFront = data.search !== null;
const hasTest = data.n_test !== null;
const names = units.map((unit) => unit.name);
const byCost = points.map((_, i) => i);
if (hasFront) byCost.sort((a, b) => points[a].validation.cost - points[b].validation.cost || a - b);

const state = {
  picked: data.in_use,
  limits: { cost: Infinity, coverage: -Infinity, accuracy: -Infinity },
  sort: { column: 0, down: false },
  all: false,
};

const bought = (point, stage) => names.filter((_, u) => point.design[u] === stage);
const never = (point, most) => {
  const left = bought(point, -1);
  return left.length > most ? `${left.length} others` : left.join(", ");
};
const treeOf = (point) => (point.tree === undefined ? null : point.tree.test || point.tree.validation);
const describe = (point) =>
  treeOf(point) ? treeWords(treeOf(point)) : point.price.map((_, j) => bought(point, j).join(", ")).join(" | ") +
  (point.design.includes(-1) ? `; never ${never(point, 3)}` : "");
const labels = (point) => point.thresholds.replaceAll(" %", "\u00a0%"); // when it gives a label, in words
const judgedRows = `${data.judged} rows`; // behind the figures of the search
const rowsWord = hasTest ? "held-out rows" : judgedRows;
const judged = (point) => point.test || point.validation;

function within(i) {
  const figures = points[i].validation;
  const { cost, coverage, accuracy } = state.limits;
  const right = figures.accuracy === null ? -1 : figures.accuracy;
  return figures.cost <= cost && figures.coverage >= coverage && (accuracy === -Infinity || right >= accuracy);
}

/* ---- header ---- */

function drawHeader() {
  const point = points[data.in_use];
  const figures = judged(point);
  const stages = point.price.length === 1 ? "one stage" : `up to ${point.price.length} stages`;
  const nBought = point.design.filter((stage) => stage >= 0).length;
  const some = nBought < units.length ? `${point.price.length > 1 ? "up to " : ""}${nBought} of ` : "";
  byId("headline").textContent =
    data.threshold > 1
      ? "A classifier that gives no labels, because its promise cannot be made."
      : `A classifier that buys ${some}its ${plural(units.length, "feature")} in ${stages}.`;
  const spent = data.money && data.money[0];
  if (spent) {
    byId("headline").textContent = `${money(spent.total)} per case, tests and errors together. ${byId("headline").textContent}`;
  }
  byId("how").textContent = `Stages: ${data.stages}. Labels: ${labels(point)}.`;
  const figuresOf = `The figures of ${judgedRows} on this page are for the threshold of the search.`;
  const promise = data.promise ? [...data.promise, figuresOf] : [];
  byId("promise").replaceChildren(...promise.map((line) => h("p", null, line)));
  const basis = byId("basis");
  if (figures === null) {
    basis.textContent = "There are no results on held-out rows: pass the result of clf.evaluate to the report.";
    byId("base-rate").hidden = true;
    return;
  }
  const which = hasFront ? `Point ${data.in_use} of ${points.length}, the one in use, on ` : "On ";
  if (hasTest) {
    basis.textContent = `${which}${whole(data.n_test)} held-out rows, which neither training nor search used.`;
  } else {
    basis.classList.add("warning");
    basis.textContent =
      `${which}${whole(data.n_validation)} ${judgedRows}. ${data.selected} Hold out rows, and evaluate the design on them.`;
  }
  const interval = (name, text) => {
    const ends = hasTest && figures[`${name}_interval`];
    return ends && ends[0] !== ends[1] ? spanText(ends, text) : null;
  };
  const answered = figures.n_rows - figures.rejected;
  const right = figures.right
    ? `${whole(figures.right.reduce((a, b) => a + b, 0))} of ${whole(answered)} labels correct`
    : "of the labels are correct";
  const saved = figures.saving === null
    ? "everything is free"
    : `${wholePercent(Math.abs(figures.saving))} ${figures.saving < 0 ? "more" : "less"} than buying everything ` +
      `(${money(data.total)})`;
  const tile = (title, value, words, range, unit) =>
    h(
      "div", { class: "tile" },
      h("h3", null, title),
      h("p", { class: "value" }, value, unit ? h("span", { class: "unit" }, ` ${unit}`) : null),
      h("p", null, words),
      range && h("p", { class: "range" }, "95\u00a0% confidence interval ", h("span", { class: "whole" }, range)),
    );
  byId("tiles").replaceChildren(
    spent ? moneyTile(spent, tile) : "",
    tile(
      "Coverage", percent(figures.coverage), `${whole(answered)} of ${whole(figures.n_rows)} rows get a label`,
      interval("coverage", percent),
    ),
    tile("Accuracy", percent(figures.accuracy), right, interval("accuracy", percent)),
    tile("Mean cost", money(figures.cost), saved, interval("cost", money), "per case"),
    worstTile(figures, tile),
  );
  drawBaseRate(figures);
}

function moneyTile(spent, tile) {
  const parts = [`tests ${money(spent.tests)}`, `errors ${money(spent.errors)}`, `no answers ${money(spent.no_answers)}`];
  return tile("Money", money(spent.total), parts.join(", "), spanText(spent.interval_95, money), "per case");
}

function worstTile(figures, tile) {
  const row = leastFound(figures);
  if (row === null) return "";
  const words = row[FOUND] ? `${whole(row[FOUND])} of ${plural(row[CASES], "case")}` : problem("none of its cases is found");
  const range = spanText([row[LOW], row[HIGH]], percent);
  return tile(["Worst recall: class ", h("q", null, data.classes[row[CLASS]])], percent(row[RECALL]), words, range);
}

function drawBaseRate(figures) {
  const line = byId("base-rate");
  const rate = hasTest ? data.base_rate.test : data.base_rate.validation;
  const others = data.money ? data.money.slice(1).map((other) => `${other.name}: ${money(other.total)} per case`) : [];
  const words = rate === null || !others.length ? rate : `${others.join("; ")}. ${rate}`;
  line.hidden = words === null;
  line.textContent = words === null ? "" : `To compare: ${words[0].toLowerCase()}${words.slice(1)}`;
  const top = mostFrequent(figures);
  if (top && figures.accuracy !== null && figures.accuracy_interval[0] <= top.share) {
    line.append(" ", problem("The interval of the accuracy reaches down to that: the rows do not show that the classifier is better."));
    line.classList.add("warning");
  }
}

/* ---- shortlist ---- */

const briefly = (point) =>
  treeOf(point) ? treeWords(treeOf(point)) : point.price
    .map((_, j) => {
      const stage = bought(point, j);
      return stage.length > 5 ? `${stage.slice(0, 4).join(", ")} and ${stage.length - 4} more` : stage.join(", ");
    })
    .join(" | ");
const listed = new Map(data.shortlist.map(({ point, reason }) => [point, reason.replaceAll(" %", "\u00a0%")]));
const inUse = (i) => (i === data.in_use ? h("span", { class: "badge" }, "in use") : null);

/** The interval of a figure; of an undefined or an exact one, nothing. */
function rangeOf(figures, key, text) {
  const ends = figures[`${key}_interval`];
  if (!ends || figures[key] === null || ends[0] === ends[1]) return null;
  return h("span", { class: "range" }, spanText(ends, text));
}

function drawShortlist() {
  const figure = (i, key, text) => [
    h("b", null, points[i].validation[key] === null ? "–" : text(points[i].validation[key])),
    rangeOf(points[i].validation, key, text),
  ];
  byId("shortlist-lead").textContent =
    `${listed.size === points.length ? `All ${plural(points.length, "point")}` : `${listed.size} clearly different points of ${whole(points.length)}`}, ` +
    `cheapest first, with figures and 95\u00a0% intervals on the ${judgedRows}. Stages are separated by |. Select a point to see it below.`;
  const rows = [...listed].map(([i, reason]) =>
    h(
      "tr", { class: i === state.picked ? "picked" : null, onclick: () => pick(i) },
      h(
        "th", { scope: "row" },
        h("button", { type: "button", "aria-label": `Select point ${i}`, "aria-pressed": String(i === state.picked), "data-key": `pick-${i}` }, String(i)),
        " ",
        inUse(i),
      ),
      h("td", { "data-label": "mean cost per case" }, figure(i, "cost", money)),
      h("td", { "data-label": "coverage" }, figure(i, "coverage", percent)),
      h("td", { "data-label": "accuracy" }, figure(i, "accuracy", percent)),
      h("td", { "data-label": "worst recall" }, h("b", null, worstCell(points[i].validation.worst_recall))),
      h("td", { class: "words" }, h("p", null, reason), h("p", { class: "range" }, `Buys ${briefly(points[i])}; ${labels(points[i])}.`)),
    ));
  const heads = ["Point", "Mean cost per case", "Coverage", "Accuracy", "Worst recall"];
  const focused = document.activeElement.dataset.key;
  byId("picks").replaceChildren(
    h("thead", null, h("tr", null, heads.map((name) => h("th", { scope: "col" }, name)), h("th", { scope: "col", class: "words" }, "Why, and how"))),
    h("tbody", null, rows),
  );
  refocus(byId("picks"), focused);
}

/** A table that is drawn again keeps the focus. */
function refocus(table, key) {
  const again = key && table.querySelector(`[data-key="${key}"]`);
  if (again) again.focus({ preventScroll: true });
}

/* ---- frontier ---- */

const LIMITS = [
  { key: "cost", name: "Mean cost at most", text: money, most: true },
  { key: "coverage", name: "Coverage at least", text: percent },
  { key: "accuracy", name: "Accuracy at least", text: percent },
];

function drawFilters() {
  byId("objectives").textContent = data.objectives.join(", ").replace(/, ([^,]*)$/, " and $1");
  const sliders = LIMITS.map(({ key, name, text, most }) => {
    const values = points.map((point) => point.validation[key]).filter((value) => value !== null);
    const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    const output = h("output", { for: `limit-${key}` }, "any");
    const input = h("input", { type: "range", id: `limit-${key}`, min: 0, max: 200, disabled: low === high });
    input.defaultValue = most ? 200 : 0;
    input.setAttribute("aria-valuetext", "any");
    input.addEventListener("input", () => {
      const free = +input.value === (most ? 200 : 0);
      const value = low + ((high - low) * input.value) / 200;
      state.limits[key] = free ? (most ? Infinity : -Infinity) : value;
      output.textContent = free ? "any" : text(value);
      input.setAttribute("aria-valuetext", output.textContent);
      drawScatter(); // its axes fit the points within the limits
    });
    return h("div", null, h("label", { for: `limit-${key}` }, name, " ", output), input);
  });
  const reset = h("button", { type: "reset", class: "quiet" }, "Reset");
  const fittest = h("button", { type: "button", id: "fittest", class: "quiet" }, "Select the fittest of them");
  fittest.addEventListener("click", () => pick(points.findIndex((_, i) => within(i)))); // fittest first
  const form = byId("filters");
  const left = h("p", { id: "left", "aria-live": "polite" });
  form.append(...sliders, h("div", { class: "verdict" }, left, fittest, reset));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => {
    for (const input of form.querySelectorAll("input")) input.dispatchEvent(new Event("input"));
  }));
}

function drawLimits() {
  const n = points.filter((_, i) => within(i)).length;
  byId("left").textContent =
    n === points.length ? `All ${plural(n, "point")}` : `${n} of ${points.length} points within the limits`;
  byId("fittest").disabled = !n;
  for (const mark of byId("scatter").querySelectorAll("[data-point]")) {
    const i = +mark.dataset.point;
    mark.toggleAttribute("hidden", !within(i) && i !== state.picked);
  }
  drawTable();
}

const spoken = (i) => {
  const { coverage, accuracy, cost } = points[i].validation;
  return `Point ${i}: mean cost ${money(cost)}, accuracy ${percent(accuracy)}, coverage ${percent(coverage)}`;
};

function tipLines(i) {
  const { validation, test, price } = points[i];
  const figures = ({ coverage, accuracy, cost }) =>
    `coverage ${percent(coverage)}, accuracy ${percent(accuracy)}, cost ${money(cost)}`;
  const lines = [`Point ${i} · ${plural(price.length, "stage")}${i === data.in_use ? " · in use" : ""}`];
  lines.push(`${test ? `${data.judged}: ` : ""}${figures(validation)}`);
  if (test) lines.push(`held out: ${figures(test)}`);
  return lines;
}

/** Accuracies, and the ends of the shortlist's intervals as far as these do not squeeze the points. */
function reach(accuracies) {
  if (!accuracies.length) return [0, 1];
  const [low, high] = [Math.min(...accuracies), Math.max(...accuracies)];
  const room = Math.max(high - low, 0.01) / 3;
  const ends = [...listed.keys()].filter((i) => within(i) && points[i].validation.accuracy !== null)
    .flatMap((i) => points[i].validation.accuracy_interval);
  return [low, high, ...ends.map((end) => Math.min(Math.max(end, low - room), high + room))];
}

/** What always answering the most frequent class would score, as a line, if it is in the picture. */
function baseLine(box, y) {
  const top = mostFrequent(points[data.in_use].validation);
  if (!top || top.share < y.low || top.share > y.high) return null;
  const at = { y1: y(top.share), y2: y(top.share) };
  const words = `always answering “${top.name}”: ${percent(top.share)}`;
  return [
    s("line", { class: "base", x1: box.left, x2: box.right, ...at }),
    s("text", { class: "tick halo", x: box.right - 4, y: y(top.share) - 5, "text-anchor": "end" }, words),
  ];
}

function drawScatter() {
  const holder = byId("scatter");
  const width = Math.max(holder.clientWidth, 280);
  const height = Math.round(Math.min(Math.max(width * 0.62, 320), 540));
  const narrow = width < 480; // the legend then has a line of its own
  const box = { left: 52, right: width - 14, top: narrow ? 54 : 34, bottom: height - 50 };
  const shown = points.filter((_, i) => within(i) || i === state.picked);
  const values = (key) => shown.map((point) => point.validation[key]).filter((value) => value !== null);
  const accuracies = values("accuracy");
  const x = scale(values("cost"), box.left, box.right, 0.05);
  const y = scale(reach(accuracies), box.bottom, box.top, 0.05);
  const answering = points.filter((point) => point.validation.accuracy !== null || !accuracies.length);
  const coverages = answering.map((point) => point.validation.coverage);
  const [least, most] = [Math.min(...coverages), Math.max(...coverages)];
  const shade = (coverage) => cividis(most > least ? (coverage - least) / (most - least) : 1);
  const titles = { x: "mean cost per case", y: "accuracy: labels that are correct", xText: number, yText: wholePercent };
  if (y.high - y.low < 0.06) titles.yText = percent;

  const marks = byCost.map((i) => {
    const { cost, accuracy, coverage } = points[i].validation;
    const at = [x(cost), accuracy === null ? box.bottom : y(accuracy)];
    const large = listed.has(i);
    const shape = accuracy === null
      ? s("path", { class: "silent", d: "M-4 -4L4 4M-4 4L4 -4" })
      : s("circle", { class: "dot", r: large ? 6 : points.length > 60 ? 3 : 4.5, fill: shade(coverage) });
    return s(
      "g",
      {
        class: large ? "point listed" : "point",
        role: "radio",
        "data-point": i,
        "aria-label": spoken(i),
        transform: `translate(${at[0].toFixed(1)} ${at[1].toFixed(1)})`,
        onclick: () => pick(i, true),
        onkeydown: (event) => step(event, i),
        onpointerenter: (event) => tip.show(tipLines(i), event.clientX, event.clientY),
        onpointerleave: tip.hide,
        onblur: tip.hide,
        onfocus: (event) => {
          if (!event.currentTarget.matches(":focus-visible")) return;
          const place = event.currentTarget.getBoundingClientRect();
          tip.show(tipLines(i), place.right, place.top);
        },
      },
      s("circle", { class: "hit", r: large ? 11 : 6 }),
      s("circle", { class: "ring", r: 9.5 }),
      shape,
    );
  });
  const whiskers = byCost.filter((i) => points[i].validation.accuracy !== null).map((i) => {
    const { cost, accuracy_interval: ends } = points[i].validation;
    const [low, high] = ends.map((end) => Math.min(Math.max(y(end), box.top), box.bottom).toFixed(1));
    return s("path", { class: listed.has(i) ? "whisker listed" : "whisker", "data-point": i, d: `M${x(cost).toFixed(1)} ${low}V${high}` });
  });
  marks.sort((a, b) => a.classList.contains("listed") - b.classList.contains("listed")); // drawn last: on top
  const colours = CIVIDIS.map((colour, k) => s("rect", { x: k * 12, width: 12.5, height: 10, fill: colour }));
  const legend = most > least
    ? s(
        "g", { transform: `translate(${box.right - 158} ${narrow ? 24 : 4})` }, colours,
        s("rect", { class: "edge", width: 120.5, height: 10 }),
        s("text", { class: "tick", x: -7, y: 9, "text-anchor": "end" }, `coverage ${wholePercent(least)}`),
        s("text", { class: "tick", x: 127, y: 9 }, wholePercent(most)),
      )
    : s("text", { class: "tick", x: box.right, y: 13, "text-anchor": "end" }, `coverage ${percent(most)}`);
  holder.replaceChildren(
    canvas(
      width, height, { role: "group", "aria-label": "Front" },
      frame(box, x, y, titles),
      s("g", { "aria-hidden": "true" }, legend, baseLine(box, y), whiskers),
      s("g", { role: "radiogroup", "aria-label": "Points of the front, cheapest first", id: "marks" }, marks),
    ),
  );
  const silent = shown.length - accuracies.length;
  byId("scatter-note").textContent =
    `On ${plural(data.n_validation, `${data.judged} row`)}. ${data.selected} ` +
    (silent > 1 ? "The crosses at the bottom give no label, so their accuracy is undefined." : "") +
    (silent === 1 ? "The cross at the bottom gives no label, so its accuracy is undefined." : "");
  markPicked();
}

/** Arrow keys move through the points in order of cost, as in a group of radio buttons. */
function step(event, i) {
  const shown = byCost.filter((k) => within(k) || k === state.picked);
  const at = shown.indexOf(i);
  const moves = {
    ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: shown.length - 1,
  };
  const to = moves[event.key];
  if (event.key === "Enter" || event.key === " ") pick(i, true);
  else if (to === undefined) return;
  else if (to >= 0 && to < shown.length) pick(shown[to], true);
  event.preventDefault();
}

function markPicked() {
  for (const mark of byId("scatter").querySelectorAll(".point")) {
    const chosen = +mark.dataset.point === state.picked;
    mark.setAttribute("aria-checked", chosen);
    mark.setAttribute("tabindex", chosen ? 0 : -1);
    mark.classList.toggle("picked", chosen);
    if (chosen) mark.parentNode.append(mark); // on top of the others
  }
  for (const mark of byId("scatter").querySelectorAll(".whisker")) {
    mark.classList.toggle("picked", +mark.dataset.point === state.picked);
  }
  drawLimits();
}

function drawPanel() {
  const i = state.picked;
  const point = points[i];
  const { validation, test } = point;
  const cell = (figures, key, text) => {
    const shown = key === "worst_recall" ? worstCell(figures[key]) : text(figures[key]);
    return h("td", null, shown, rangeOf(figures, key, text));
  };
  const line = (name, key, text) =>
    h("tr", null, h("th", { scope: "row" }, name), cell(validation, key, text), test && cell(test, key, text));
  const columns = [data.judged, test && "held out"].filter(Boolean);
  const first = bought(point, 0);
  const more = first.length > 6 ? ` and ${first.length - 6} more` : "";
  byId("picked").replaceChildren(
    h("h3", null, `Point ${i}`, inUse(i)),
    listed.has(i) ? h("p", null, listed.get(i)) : null,
    h("p", null, `${plural(point.price.length, "stage")}` +
      (validation.ties > 1 ? `; ${whole(validation.ties - 1)} more ${validation.ties > 2 ? "designs have" : "design has"} these figures` : "")),
    h(
      "table", { class: "figures" },
      h("thead", null, h("tr", null, h("td"), columns.map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody", null,
        line("Coverage", "coverage", percent),
        line("Accuracy", "accuracy", percent),
        line("Mean cost per case", "cost", money),
        line("Saving", "saving", wholePercent),
        line("Worst recall", "worst_recall", percent),
        data.extra.map((name, k) =>
          h(
            "tr", null, h("th", { scope: "row" }, name), h("td", null, number(validation.extra[k])),
            test && h("td", null, test.extra[k] === null ? "" : number(test.extra[k])),
          ),
        ),
      ),
    ),
    h("p", { class: "first" }, h("strong", null, "Buys first: "), first.slice(0, 6).join(", ") + more),
    h("p", null, h("strong", null, "Labels: "), `${labels(point)}.`),
    h(
      "p", { class: "commands" },
      h("span", null, "To use it:"),
      h("code", null, `clf.use(${i})`),
      h("code", null, `emsco use ${data.notes.model || "model.emsco"} ${i}`),
    ),
  );
}

/* ---- table of points ---- */

const figureColumns = (rows) =>
  [["Coverage", "coverage", percent], ["Accuracy", "accuracy", percent], ["Mean cost", "cost", money]].map(
    ([name, key, text]) => ({
      name, text, value: (i) => points[i][rows][key], range: (i) => points[i][rows][`${key}_interval`],
    }),
  );
const COLUMNS = [
  { name: "Point", value: (i) => i, text: String },
  { name: "Stages", value: (i) => points[i].price.length, text: whole },
  ...figureColumns("validation"),
  ...data.extra.map((name, k) => ({ name, value: (i) => points[i].validation.extra[k], text: number })),
  { name: "Worst recall", value: (i) => points[i].validation.worst_recall, text: percent, zero: true },
  { name: "Fitness", value: (i) => points[i].validation.fitness, text: (x) => x.toFixed(3) },
  ...(hasTest ? figureColumns("test") : []),
];

function drawTable() {
  byId("points-box").hidden = !state.all;
  const button = byId("all");
  button.setAttribute("aria-expanded", String(state.all));
  button.textContent = state.all ? "Hide the table of all points" : `Show all ${plural(points.length, "point")} as a table`;
  if (!state.all) return;
  const { column, down } = state.sort;
  const { value } = COLUMNS[column];
  const key = (i) => (value(i) === null ? -Infinity : value(i));
  const order = points.map((_, i) => i).filter(within);
  order.sort((a, b) => (down ? key(b) - key(a) : key(a) - key(b)) || a - b);
  const focused = document.activeElement.dataset.key; // the table is redrawn and keeps the focus
  const head = COLUMNS.map(({ name }, c) => {
    const direction = c !== column ? "none" : down ? "descending" : "ascending";
    const arrow = { none: "", ascending: " ↑", descending: " ↓" }[direction];
    return h(
      "th", { scope: "col", "aria-sort": direction },
      h(
        "button", { type: "button", "data-key": `sort-${c}`, onclick: () => sortBy(c) },
        name,
        h("span", { class: "arrow", "aria-hidden": "true" }, arrow),
      ),
    );
  });
  const rows = order.map((i) =>
    h(
      "tr", { class: i === state.picked ? "picked" : null, onclick: () => pick(i) },
      COLUMNS.map(({ value, text, range, zero }, c) => {
        const cell = value(i) === null ? "–" : text(value(i));
        const ends = range && value(i) !== null ? h("span", { class: "range" }, range(i).map(text).join("–")) : null;
        if (zero && value(i) === 0) return h("td", null, cell, h("div", null, problem("never found")));
        if (c) return h("td", null, cell, ends);
        const attributes = { type: "button", "data-key": `row-${i}`, "aria-label": `Select point ${i}` };
        const button = h("button", { ...attributes, "aria-pressed": String(i === state.picked) }, cell);
        return h("th", { scope: "row" }, button);
      }),
      h("td", { class: "words" }, describe(points[i]), h("div", { class: "range" }, labels(points[i]))),
    ),
  );
  byId("points").replaceChildren(
    h(
      "thead", null,
      hasTest
        ? h(
            "tr", null,
            h("td", { colspan: 2 }),
            h("th", { scope: "colgroup", colspan: 5 + data.extra.length }, judgedRows),
            h("th", { scope: "colgroup", colspan: 3 }, "held-out rows"),
            h("td"),
          )
        : null,
      h("tr", null, head, h("th", { scope: "col", class: "words" }, "Buys, stage | stage")),
    ),
    h("tbody", null, rows),
  );
  refocus(byId("points"), focused);
  drawHints();
}

/** Say where a table is wider than its box. */
function drawHints() {
  for (const box of document.querySelectorAll(".scroll")) {
    if (!box.nextElementSibling || !box.nextElementSibling.matches(".hint")) {
      box.after(h("p", { class: "hint", "aria-hidden": "true" }, "Scroll the table sideways for more →"));
    }
    const more = !box.hidden && box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("more", more);
    box.nextElementSibling.hidden = !more;
  }
}

function sortBy(column) {
  const down = state.sort.column === column ? !state.sort.down : column !== 0 && COLUMNS[column].text !== money;
  state.sort = { column, down };
  drawTable();
}

/* ---- the design, stage by stage ---- */

function drawDesign() {
  const point = points[state.picked];
  const flow = judged(point);
  byId("design-h").textContent = hasFront ? `Point ${state.picked}, stage by stage` : "The design, stage by stage";
  const without = point.design.includes(-1) ? ` Never bought: ${never(point, 12)}.` : "";
  const rule =
    `A case pays for each stage it reaches, and leaves at the first stage that is confident. Labels: ${labels(point)}. ` +
    `Prices are per case.${without}`;
  byId("design-lead").textContent =
    flow ? `Decisions on the ${whole(flow.n_rows)} ${rowsWord}. ${rule}` : rule;
  const tree = treeOf(point);
  byId("tree").replaceChildren();
  if (tree) {
    byId("design-lead").textContent =
      (tree.rows === null ? "" : `Decisions on the ${whole(tree.rows)} ${tree.counted === "test" ? rowsWord : judgedRows}. `) +
      "A case buys stage 1 and leaves if that is confident; else it goes on in its branch, and leaves at the first stage " +
      `that is confident. Labels: ${labels(point)}. Prices are per case.${without}`;
    byId("tree").append(treePicture(tree, Math.max(byId("tree").clientWidth, 260)));
    byId("design-key").replaceChildren();
    byId("flow").replaceChildren();
    return;
  }
  const kinds = !flow ? [] : flow.right ? ["right", "wrong", "on", "none"] : ["label", "on", "none"];
  const words = {
    right: "correct label", wrong: "wrong label", label: "label", on: "continues", none: "no label",
  };
  byId("design-key").replaceChildren(...kinds.map((kind) => h("span", null, h("i", { class: kind }), words[kind])));

  const items = point.price.map((price, j) => {
    const features = bought(point, j);
    const last = j === point.price.length - 1;
    const card = [
      h(
        "div", { class: "what" },
        h("h3", null, `Stage ${j + 1}`),
        h("ul", { class: "chips" }, features.map((name) => h("li", null, name))),
      ),
      h(
        "p", { class: "price" },
        h("span", null, "price ", h("b", null, money(price))),
        h("span", null, "so far ", h("b", null, money(point.paid[j]))),
      ),
    ];
    if (flow) {
      const reached = flow.reached[j];
      const on = last ? flow.rejected : flow.reached[j + 1];
      const parts = flow.right
        ? [["right", flow.right[j], "correct"], ["wrong", flow.answered[j] - flow.right[j], "wrong"]]
        : [["label", flow.answered[j], "get a label"]];
      parts.push(last ? ["none", on, "no label"] : ["on", on, "continue"]);
      const bar = h("div", { class: "stack", "aria-hidden": "true" });
      for (const [kind, n] of parts.filter(([, n]) => n)) {
        const piece = h("i", { class: kind });
        piece.style.width = `${(100 * n) / flow.n_rows}%`;
        bar.append(piece);
      }
      const counts = reached ? parts.map(([, n, word]) => `${whole(n)} ${word}`).join(" · ") : "no row reaches it";
      const who = h("p", null, h("b", null, `${whole(reached)} reach it`), ": ", counts);
      card.push(h("div", { class: "who" }, bar, who));
    }
    return h("li", { class: features.join("").length > 64 ? "stage wide" : "stage" }, card);
  });
  const nobody = flow
    ? `${plural(flow.rejected, "row")} of ${whole(flow.n_rows)} (${percent(flow.rejected / flow.n_rows)})`
    : "A case that is still undecided";
  const fate = `${flow && flow.rejected !== 1 ? "get" : "gets"} no label and ${flow && flow.rejected !== 1 ? "pay" : "pays"} ${money(point.paid.at(-1))}.`;
  const everyone = point.labels_all && !(flow && flow.rejected);
  items.push(
    everyone
      ? h("li", { class: "end" }, h("h3", null, "Nobody is left"), h("p", null, `After the last stage, at ${money(point.paid.at(-1))} per case, everyone has a label.`))
      : h("li", { class: "end" }, h("h3", null, "Inconclusive"), h("p", null, `${nobody} ${fate}`)),
  );
  byId("flow").replaceChildren(...items);
}

/* ---- results ---- */

function drawResults() {
  const { test } = points[state.picked];
  const rows = [
    [hasFront ? `Point ${state.picked}` : "This design", test],
    [`Buy everything, ${data.searched_with === null ? "same threshold" : `threshold ${data.searched_with}`}`, data.everything],
    ["Buy everything, always answer", data.always],
  ].filter(([, result], k) => k < 2 || result.coverage !== data.everything.coverage);
  if (rows.length < 3) rows[1][0] = "Buy everything";
  const figures = [
    ["Coverage", "coverage", percent, wholePercent],
    ["Accuracy of the labels", "accuracy", percent, wholePercent],
    ["Mean cost per case", "cost", money, number],
  ].map(([title, key, text, brief]) => {
    const axis = fitAxis(rows.map(([, result]) => result[`${key}_interval`]), key !== "cost");
    const fine = key !== "cost" && axis.high - axis.low < 0.06;
    return { title, key, text, axis, brief: fine ? percent : brief };
  });
  const cell = (result, { title, key, text, axis }) => {
    const interval = result[`${key}_interval`];
    const range = interval[0] !== interval[1] ? spanText(interval, text) : key === "cost" ? "for every case" : "";
    return h(
      "td", { "data-label": title },
      h(
        "div", null,
        h("b", null, result[key] === null ? "–" : text(result[key])),
        h("span", { class: "range" }, ` ${range}`),
        intervalMark(result[key], interval, axis),
      ),
    );
  };
  byId("results-lead").textContent = `${plural(data.n_test, "row")}; each figure with its 95\u00a0% confidence interval.`;
  byId("compared").replaceChildren(
    h("thead", null, h("tr", null, h("td"), figures.map(({ title, axis, brief }) =>
      h("th", { scope: "col" }, title, axisMark(axis, brief))), h("th", { scope: "col" }, "Worst recall"))),
    h("tbody", null, rows.map(([name, result], k) =>
      h(
        "tr", { class: k ? null : "picked" },
        h("th", { scope: "row" }, name),
        figures.map((figure) => cell(result, figure)),
        h("td", { "data-label": "Worst recall" }, h("div", null, worstCell(result.worst_recall))),
      ))),
  );
}

/* ---- features x points ---- */

const deepest = Math.max(...points.map((point) => point.price.length));
const strength = (stage) => (deepest > 1 ? 1 - (0.88 * stage) / (deepest - 1) : 1);
const stageOf = (design, u) => (design[u] < 0 ? deepest : design[u]);
const meanStage = units.map((_, u) => points.reduce((sum, { design }) => sum + stageOf(design, u), 0) / points.length);
const byStage = units.map((_, u) => u).sort((a, b) => meanStage[a] - meanStage[b] || a - b);

function drawMatrix() {
  const holder = byId("matrix");
  const width = Math.max(holder.clientWidth, 280);
  const left = Math.min(Math.max(...names.map((name) => name.length)) * 6.6 + 14, width * 0.36);
  const room = Math.floor((left - 12) / 6.6);
  const tall = units.length > 30 ? 15 : 22;
  const cell = Math.min((width - left - 10) / points.length, 60);
  const right = left + cell * points.length;
  const bottom = units.length * tall;
  const paths = Array.from({ length: deepest }, () => []);
  const [across, down] = [cell.toFixed(2), tall - 2];
  byStage.forEach((u, row) => byCost.forEach((i, column) => {
    const stage = points[i].design[u];
    const corner = `${(left + column * cell).toFixed(2)} ${row * tall + 1}`;
    if (stage >= 0) paths[stage].push(`M${corner}h${across}v${down}h-${across}z`);
  }));
  const labels = byStage.map((u, row) => {
    const name = names[u].length > room ? `${names[u].slice(0, room - 1)}…` : names[u];
    const attributes = { class: "tick name", x: left - 8, y: row * tall + tall / 2 + 4, "text-anchor": "end" };
    return s("text", attributes, name, s("title", null, names[u]));
  });
  const nTicks = Math.min(points.length, Math.max(Math.floor((right - left) / 110), 2));
  const costs = Array.from({ length: nTicks }, (_, k) => {
    const c = nTicks > 1 ? Math.round((k * (points.length - 1)) / (nTicks - 1)) : 0;
    const anchor = cell < 40 && c === 0 ? "start" : cell < 40 && c === points.length - 1 ? "end" : "middle";
    const attributes = { class: "tick", x: left + (c + 0.5) * cell, y: bottom + 16, "text-anchor": anchor };
    return s("text", attributes, number(+points[byCost[c]].validation.cost.toPrecision(3)));
  });
  const at = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const c = Math.floor(((event.clientX - box.left) / box.width) * points.length);
    const r = Math.floor(((event.clientY - box.top) / box.height) * units.length);
    return [byCost[Math.min(Math.max(c, 0), points.length - 1)], byStage[Math.min(Math.max(r, 0), units.length - 1)]];
  };
  const told = (event) => {
    const [i, u] = at(event);
    const stage = points[i].design[u];
    const words = stage < 0 ? "never bought" : `bought at stage ${stage + 1} of ${points[i].price.length}`;
    tip.show([names[u], `point ${i}: ${words}`], event.clientX, event.clientY);
  };
  const label =
    `Stage at which each of ${plural(units.length, "feature")} is bought, ` +
    `in each of ${plural(points.length, "design")}`;
  holder.replaceChildren(
    canvas(
      width, bottom + 46, { role: "img", "aria-label": label },
      labels,
      paths.map((d, stage) => s("path", { class: "cell", "fill-opacity": strength(stage).toFixed(3), d: d.join("") })),
      s("rect", { class: "column", "data-left": left, "data-cell": cell, width: cell + 2, height: bottom, rx: 2 }),
      costs,
      s("text", { class: "title", x: right, y: bottom + 36, "text-anchor": "end" }, "mean cost of the point"),
      s("rect", {
        class: "hit", x: left, y: 0, width: right - left, height: bottom,
        onclick: (event) => pick(at(event)[0]),
        onpointermove: told,
        onpointerleave: tip.hide,
      }),
    ),
  );
  markColumn();
  const key = byId("matrix-key");
  const quarters = [0, 1, 2, 3, 4].map((k) => Math.floor((k * (deepest - 1)) / 4));
  const shown = deepest <= 12 ? paths.map((_, stage) => stage) : quarters;
  key.replaceChildren("stage ", ...shown.map((stage) => {
    const swatch = h("i", { class: "shade" });
    swatch.style.opacity = strength(stage).toFixed(3);
    return h("span", null, swatch, String(stage + 1));
  }), points.some(({ design }) => design.includes(-1)) ? h("span", null, "blank: never bought") : "");
}

/** Frame the column of the selected point; redrawing 30,000 cells for it would be slow. */
function markColumn() {
  const column = byId("matrix").querySelector(".column");
  const { left, cell } = column.dataset;
  column.setAttribute("x", +left + byCost.indexOf(state.picked) * cell - 1);
}

/* ---- prices, search, settings ---- */

function drawPrices() {
  const { design } = points[state.picked];
  const columns = units.some((unit) => unit.columns.length > 1 || unit.columns[0] !== unit.name);
  const groups = units.some((unit) => unit.group !== null);
  byId("prices-lead").textContent =
    `${data.price_rule} Everything together costs ${money(data.total)} per case, in the unit of the price list.` +
    (groups ? " After the first purchase of a group, the other members of the group cost the discount price." : "");
  const place = hasFront ? `point ${state.picked}` : "the design";
  const head = ["Feature", columns && "Columns", "Price", groups && "Group", groups && "Discount price", `Stage in ${place}`];
  const kind = (name) => (name === "Columns" || name === "Group" ? "words" : null);
  byId("price-list").replaceChildren(
    h("thead", null, h("tr", null, head.filter(Boolean).map((name) =>
      h("th", { scope: "col", class: kind(name) }, name)))),
    h("tbody", null, units.map((unit, u) =>
      h(
        "tr", null,
        h("th", { scope: "row" }, unit.name, unit.sources.length ? ` (from ${unit.sources.join(", ")})` : ""),
        columns ? h("td", { class: "words" }, unit.columns.join(", ")) : null,
        h("td", null, money(unit.price)),
        groups ? h("td", { class: "words" }, unit.group === null ? "" : unit.group) : null,
        groups ? h("td", null, unit.discount === null ? "" : money(unit.discount)) : null,
        h("td", null, design[u] < 0 ? "never" : String(design[u] + 1)),
      ))),
  );
}

function drawSearch() {
  const { certificate, seconds, name, n_steps, n_designs, n_feature_sets, timed_out } = data.search;
  const took = (time) => (time === null ? "" : `, in ${time < 10 ? time.toFixed(1) : whole(Math.round(time))} seconds`);
  const words = byId("search-words");
  if (certificate) {
    const verdict = certificate.proven
      ? `The front is proven to be complete on the ${judgedRows}.`
      : "The search ended early: these are the best points found; the front is not proven.";
    words.append(
      `There are ${whole(certificate.n_designs)} designs. ${whole(certificate.n_walked)} were evaluated and ` +
        `${whole(certificate.n_ruled_out)} ruled out, each proven to be dominated or to equal an evaluated one` +
        `${took(certificate.seconds)}. `,
      h("strong", null, verdict),
      timed_out ? ` ${timed_out}` : "",
    );
    return;
  }
  const designs = n_steps ? `evaluated ${whole(n_designs.at(-1))} designs in ${plural(n_steps, "step")}` : "searched";
  const trained = n_feature_sets === null ? "" : ` and trained ${plural(n_feature_sets, "feature set")}`;
  words.textContent =
    `${name || "The search"} ${designs}${trained}${took(seconds)}. Better designs may exist: the front is not proven.` +
    (timed_out ? ` ${timed_out}` : "");
}

function drawHistory() {
  const { n_designs, n_front, n_sets } = data.search;
  if (n_designs.length < 2) return;
  const holder = byId("history");
  const across = holder.clientWidth;
  const width = Math.max(across > 720 ? (across - 32) / 2 : across, 260);
  const titles = { x: "designs evaluated", xText: short, yText: short };
  holder.replaceChildren(
    lineChart(width, n_designs, n_front, { ...titles, y: "points on the front" }),
    lineChart(width, n_designs, n_sets, { ...titles, y: "feature sets trained" }),
  );
}

const short = (n) => n.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });

function drawSettings() {
  byId("learning").textContent = data.learning;
  const list = (entries) =>
    entries.flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value === null ? "–" : String(value))]);
  const notes = Object.entries(data.notes);
  byId("notes").append(...list(notes));
  byId("notes").parentNode.hidden = !notes.length;
  byId("parameters").append(...list(Object.entries(data.settings)));
}

/* ---- picking, start ---- */

function pick(i, focus) {
  if (!(i >= 0 && i < points.length)) return;
  state.picked = i;
  drawPicked();
  if (focus) byId("scatter").querySelector(".point.picked").focus({ preventScroll: true });
  const link = `#point=${i}`;
  if (location.hash !== link) location.replace(link);
}

function drawPicked() {
  if (hasFront) {
    if (points.every((_, i) => within(i))) markPicked();
    else drawScatter(); // the axes fit the selected point, too
    drawShortlist();
    drawPanel();
    markColumn();
  }
  if (hasTest) drawResults();
  if (hasFront || hasTest) drawClasses();
  drawDesign();
  drawPrices();
  drawHints();
}

function drawCharts() {
  if (!hasFront) return;
  drawScatter();
  drawMatrix();
  drawHistory();
}

function readHash() {
  const found = /^#point=(\d+)$/.exec(location.hash);
  if (found && +found[1] !== state.picked) pick(+found[1]);
}

function start() {
  for (const id of ["shortlist", "frontier", "features", "search"]) byId(id).hidden = !hasFront;
  byId("results").hidden = !hasTest;
  byId("classes").hidden = !hasFront && !hasTest;
  drawOutlook();
  const sections = [...document.querySelectorAll("main > section")].filter((section) => !section.hidden);
  byId("contents").append(...sections.map((section) => h("a", { href: `#${section.id}` }, section.dataset.name)));
  startTheme();
  drawHeader();
  if (hasFront) {
    drawFilters();
    startBudget();
    drawSearch();
  }
  drawSettings();
  drawCharts();
  drawPicked();
  byId("all").addEventListener("click", () => {
    state.all = !state.all;
    drawTable();
  });
  addEventListener("hashchange", readHash);
  readHash();
  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    requestAnimationFrame(() => {
      drawCharts();
      if (treeOf(points[state.picked])) drawDesign();
      drawHints();
    });
  });
}

start();
