/* What if a case may cost no more than so much on average? */

const ENOUGH = 0.9; // coverage; as Evaluation.at_cost

/** The most accurate point within a budget that labels nine cases in ten; if none does, the one that labels most. */
function affordable(budget) {
  const within = byCost.filter((i) => points[i].validation.cost <= budget);
  const figure = (key) => (i) => (points[i].validation[key] === null ? -1 : points[i].validation[key]);
  const best = (candidates, key) => candidates.reduce((a, b) => (a === null || figure(key)(b) > figure(key)(a) ? b : a), null);
  const covering = within.filter((i) => points[i].validation.coverage >= ENOUGH);
  return covering.length ? best(covering, "accuracy") : best(within, "coverage");
}

const figuresOf = ({ accuracy, coverage, cost }) =>
  `accuracy ${percent(accuracy)}, coverage ${percent(coverage)}, mean cost ${money(cost)}`;

/** The cheapest dearer point that is more accurate and labels enough; if this one does not, that labels more. */
function nextBetter(found) {
  const isBetter = (i) => {
    const [now, then] = [points[found].validation, points[i].validation];
    if (now.coverage < ENOUGH) return then.coverage > now.coverage;
    return then.coverage >= ENOUGH && then.accuracy > now.accuracy;
  };
  const dearer = byCost.filter((i) => points[i].validation.cost > points[found].validation.cost);
  const better = dearer.find(isBetter);
  return better === undefined ? null : better;
}

function drawBudget() {
  const input = byId("budget-input");
  const line = byId("budget-found");
  const budget = input.value === "" ? NaN : +input.value;
  if (!Number.isFinite(budget)) {
    line.replaceChildren(`Everything together costs ${money(data.total)}; the points cost ${money(points[byCost[0]].validation.cost)} to ${money(points[byCost.at(-1)].validation.cost)} on average.`);
    return;
  }
  const found = affordable(budget);
  if (found === null) {
    line.replaceChildren(`No point is so cheap; the cheapest costs ${money(points[byCost[0]].validation.cost)} on average.`);
    return;
  }
  const better = nextBetter(found);
  const why = points[found].validation.coverage < ENOUGH ? "labels the most cases" : `the most accurate that labels ${wholePercent(ENOUGH)}`;
  const choose = h("button", { type: "button", class: "quiet", onclick: () => pick(found) }, `Select point ${found}`);
  line.replaceChildren(
    h("b", null, `Point ${found}`), ` (${why}): ${figuresOf(points[found].validation)}. `,
    better === null ? "No larger budget buys more. " : `The next better one is point ${better}: ${figuresOf(points[better].validation)}. `,
    choose,
  );
}

function startBudget() {
  byId("budget").addEventListener("submit", (event) => event.preventDefault());
  byId("budget-input").addEventListener("input", drawBudget);
  drawBudget();
}
