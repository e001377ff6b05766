/* What becomes of each class: recall, precision, and the counts by label. */

const [CLASS, CASES, FOUND, RECALL, LOW, HIGH, PRECISION, UNLABELLED] = [0, 1, 2, 3, 4, 5, 6, 7]; // of a row

/** The share of the most frequent class, and its name; null if the counts are not told. */
function mostFrequent(figures) {
  if (!figures || !figures.by_class || figures.by_class.length < data.classes.length) return null;
  const n = figures.by_class.reduce((sum, row) => sum + row[CASES], 0);
  const top = figures.by_class.reduce((a, b) => (b[CASES] > a[CASES] ? b : a));
  return { name: data.classes[top[CLASS]], share: top[CASES] / n };
}

/** The class with the least recall: its row; null if unknown. */
function leastFound(figures) {
  const rows = ((figures && figures.by_class) || []).filter((row) => row[CASES]);
  return rows.length ? rows.reduce((a, b) => (b[RECALL] < a[RECALL] ? b : a)) : null;
}

const worstCell = (value) =>
  value === null ? "–" : value > 0 ? percent(value) : [percent(value), " ", problem("a class is never found")];

function classTable(figures, axis) {
  const { by_class: rows, confusion } = figures;
  const shown = rows.map((row) => row[CLASS]);
  const labels = confusion ? data.classes : [];
  const line = (row) => {
    const t = row[CLASS];
    const lost = row[CASES] > 0 && row[FOUND] === 0;
    const recall = row[CASES]
      ? [
          h("b", null, percent(row[RECALL])),
          h("span", { class: "range" }, ` ${spanText([row[LOW], row[HIGH]], percent)}`),
          lost ? h("div", null, problem("never found")) : null,
          intervalMark(row[RECALL], [row[LOW], row[HIGH]], axis),
        ]
      : ["–", h("span", { class: "range" }, " no cases")];
    const counts = labels.map((_, g) => {
      const count = confusion[t][g];
      if (g !== t) return h("td", { class: count ? "wrong" : null }, whole(count));
      if (lost) return h("td", { class: "lost" }, whole(count), h("span", { class: "problem" }, "none"));
      return h("td", { class: count ? "right" : null }, whole(count));
    });
    return h(
      "tr", null,
      h("th", { scope: "row" }, data.classes[t]),
      h("td", null, whole(row[CASES])),
      h("td", { class: "recall" }, recall),
      h("td", null, row[PRECISION] === null ? h("span", { class: "range" }, "never given") : percent(row[PRECISION])),
      counts,
      h("td", { class: "none" }, whole(row[UNLABELLED])),
    );
  };
  const head = (name, attributes) => h("th", { scope: "col", ...attributes }, name);
  return h(
    "table", { class: "confusion" },
    h(
      "thead", null,
      labels.length
        ? h("tr", null, h("td", { colspan: 4 }), h("th", { scope: "colgroup", colspan: labels.length }, "label given"), h("td"))
        : null,
      h(
        "tr", null,
        head("true class"), head("cases"),
        head(["recall: found, of its cases", axisMark(axis, wholePercent)], { class: "recall" }),
        head("precision: correct, of its labels"),
        labels.map((name) => head(name, { class: "name" })), head("no label"),
      ),
    ),
    h("tbody", null, shown.map((_, k) => line(rows[k]))),
  );
}

function drawClasses() {
  const { test, validation } = points[state.picked];
  const who = hasFront ? `Point ${state.picked}` : "The design";
  byId("classes-h").textContent = `${who}, class by class`;
  const sets = [
    [test, `${whole(data.n_test || 0)} held-out rows`, data.base_rate.test],
    [validation, `${whole(data.n_validation || 0)} ${judgedRows}`, data.base_rate.validation],
  ].filter(([figures]) => figures && figures.by_class);
  const known = sets.flatMap(([figures]) => figures.by_class).filter((row) => row[CASES]);
  const axis = fitAxis(known.map((row) => [row[LOW], row[HIGH]]), true);
  const tables = sets.flatMap(([figures, name, base]) => [
    h("h3", null, name),
    h("div", { class: "scroll", role: "region", "aria-label": `Classes, ${name}`, tabindex: 0 }, classTable(figures, axis)),
    h("p", { class: "base" }, base),
    figures.by_class.length < data.classes.length
      ? h("p", { class: "range" }, `The ${figures.by_class.length} of ${data.classes.length} classes with the least recall.`)
      : null,
  ]);
  const missing =
    `The tables of all ${plural(points.length, "point")} are too large for this page; those of the shortlist are here. ` +
    `See clf.front_.confusion[${state.picked}]${hasTest ? ` and evaluation.points[${state.picked}].confusion` : ""}.`;
  byId("by-class").replaceChildren(...(tables.length ? tables.filter(Boolean) : [h("p", { class: "lead" }, missing)]));
}
