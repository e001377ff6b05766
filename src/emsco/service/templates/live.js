/* What happens now: counts of all workers, beside what was expected, and what the monitors see. */

const EVERY = 2000; // milliseconds
const MOST = 150; // points of the picture
const seen = { model: null, version: null, times: [], cases: [] };
let current = chosenModel();
let last = null;

const figure = (watch, value) => (value === null ? "–" : watch.name === "mean_cost" ? money(value) : percent(value));

function drawTiles(live) {
  const { cases, labelled, rejected, expected } = live;
  const covered = labelled.reduce((a, b) => a + b, 0);
  const tile = (title, value, words) =>
    h("div", { class: "tile" }, h("h3", null, title), h("p", { class: "value" }, value), h("p", null, words));
  const before = (text) => (expected ? `expected ${text}` : "");
  byId("tiles").replaceChildren(
    tile("Cases decided", whole(cases), "since the service began"),
    tile("Coverage", percent(cases ? covered / cases : null), before(expected && percent(1 - expected.rejected))),
    tile("Without a label", whole(rejected), before(expected && percent(expected.rejected))),
    tile("Mean cost", live.mean_cost === null ? "–" : money(live.mean_cost), before(expected && money(expected.mean_cost))),
  );
}

const evidenceWords = (x) => (x < 1e-3 ? "almost none" : x > 1000 ? "overwhelming" : `${x.toLocaleString("en", { maximumSignificantDigits: 2 })} of 1`);

function drawWatches(live) {
  const { watches, reason, false_alarms: rate } = live;
  byId("watches-lead").textContent = watches.length
    ? `If no figure is beyond its limit, the probability of any alarm is at most ${percent(rate)}, however long and often you look. The bars have a logarithmic scale: 0.0001 at the left, 1, an alarm, at the right.${watches.some((watch) => watch.cases > live.cases) ? " Cases from before the service began count here, too." : ""}`
    : reason
      ? `Nothing is watched: ${reason}`
      : "The monitors have not looked yet.";
  const heads = ["Limit", "Found", "Cases", "Evidence against the limit", "Alarm"];
  const rows = watches.map((watch) => {
    const bar = h("i");
    bar.style.width = `${Math.min(Math.max(1 + Math.log10(watch.evidence) / 4, 0.01), 1) * 100}%`;
    const meter = h("div", { class: watch.alarm ? "meter full" : "meter", "aria-hidden": "true" }, bar);
    const evidence = evidenceWords(watch.evidence);
    const cells = [
      [`${watch.is_least ? "at least" : "at most"} ${figure(watch, watch.limit)}`, h("div", { class: "range" }, `from ${watch.source}`)],
      [figure(watch, watch.found)],
      [whole(watch.cases)],
      [evidence, meter],
      [watch.alarm ? problem(`after ${whole(watch.alarm.n)} cases, at ${figure(watch, watch.alarm.found)}`) : "none"],
    ];
    return h(
      "tr", { class: watch.alarm ? "alarm" : null },
      h("th", { scope: "row" }, watch.name.replace("_", " ")),
      cells.map((content, c) => h("td", { "data-label": heads[c] }, h("div", null, content))),
    );
  });
  byId("watches").hidden = !rows.length;
  byId("watches").replaceChildren(
    h("thead", null, h("tr", null, h("td"), heads.map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, rows));
}

/** A share with what was expected of it, as a bar with a mark. */
function twin(share, expected, kind) {
  const bar = h("i", { class: kind });
  bar.style.width = `${100 * share}%`;
  const mark = expected === null ? null : h("b");
  if (mark) mark.style.left = `calc(${100 * Math.min(expected, 1)}% - 1px)`;
  return h("div", { class: "twin", "aria-hidden": "true" }, bar, mark);
}

function drawExits(live) {
  const { cases, labelled, rejected, expected } = live;
  const share = (n) => (cases ? n / cases : 0);
  byId("exits-lead").textContent = expected ? `Expected: the shares of ${expected.source}.` : "There is nothing to compare with in the model file.";
  byId("exits-key").replaceChildren(
    h("span", null, h("i", { class: "label" }), "label"), h("span", null, h("i", { class: "none" }), "no label"),
    expected ? h("span", null, h("i", { class: "expected" }), "expected") : "",
  );
  const row = (name, n, wanted, kind) =>
    h(
      "tr", null, h("th", { scope: "row" }, name),
      h("td", { class: "track", "data-label": "Share" }, twin(share(n), wanted, kind)),
      h("td", { "data-label": "Cases" }, `${whole(n)}, ${percent(cases ? n / cases : null)}`),
      expected ? h("td", { "data-label": "Expected" }, percent(wanted)) : null,
    );
  const heads = ["", "", "cases", expected ? "expected" : null].filter((name) => name !== null);
  byId("exits").replaceChildren(h("thead", null, h("tr", null, heads.map((name) => h("th", { scope: "col" }, name)))), h("tbody", null,
    labelled.map((n, j) => row(`Stage ${j + 1}`, n, expected ? expected.labelled[j] : null, null)),
    row("No label", rejected, expected ? expected.rejected : null, "none")));
  const total = Object.values(live.labels).reduce((a, b) => a + b, 0);
  byId("labels").replaceChildren(h("tbody", null, Object.entries(live.labels).map(([name, n]) =>
    h(
      "tr", null, h("th", { scope: "row" }, name),
      h("td", { class: "track", "data-label": "Share" }, twin(total ? n / total : 0, null, null)),
      h("td", { "data-label": "Cases" }, `${whole(n)}, ${percent(total ? n / total : null)}`),
    ))));
}

function drawColumns({ columns }) {
  const heads = ["Column", "Unavailable", "Unseen", "Shift"];
  byId("columns").replaceChildren(
    h("thead", null, h("tr", null, heads.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, columns.length
      ? columns.map(({ name, unavailable, unseen, shift }) =>
          h(
            "tr", null, h("th", { scope: "row" }, name),
            h("td", { "data-label": heads[1] }, percent(unavailable)), h("td", { "data-label": heads[2] }, percent(unseen)),
            h("td", { "data-label": heads[3] }, shift === null ? "" : `${shift > 0 ? "+" : ""}${shift.toFixed(2)}`),
          ))
      : h("tr", null, h("td", { colspan: 4 }, "No values yet."))),
  );
}

function drawRate(live) {
  if (seen.model !== live.model || seen.version !== live.version || live.cases < (seen.cases.at(-1) || 0)) {
    Object.assign(seen, { model: live.model, version: live.version, times: [], cases: [] });
  }
  seen.times.push(performance.now() / 1000);
  seen.cases.push(live.cases);
  if (seen.times.length > MOST) [seen.times, seen.cases].forEach((list) => list.shift());
  const rates = seen.cases.slice(1).map((n, k) => (n - seen.cases[k]) / (seen.times[k + 1] - seen.times[k]));
  if (rates.length < 2 || !rates.some(Boolean)) {
    byId("rate").textContent = rates.length < 2 ? "Wait a moment." : "No cases in this time.";
    return;
  }
  const times = seen.times.slice(1).map((time) => time - seen.times[0]);
  const width = Math.max(byId("rate").clientWidth, 260);
  byId("rate").replaceChildren(lineChart(width, times, rates, {
    x: "seconds on this page", y: "cases per second", xText: number, yText: number,
  }));
}

async function look() {
  const name = current;
  try {
    const live = await ask(path(name, "/live"));
    if (name !== current) return;
    showProblem(live.watches.some((watch) => watch.alarm) ? "An alarm was raised: see below." : "");
    last = live;
    byId("headline").textContent = `What ${live.model} decides now`;
    byId("basis").textContent = `Version ${live.version}, all workers.`;
    drawTiles(live);
    drawWatches(live);
    drawExits(live);
    drawColumns(live);
    drawRate(live);
  } catch (error) {
    showProblem(error.message);
  }
}

startTheme();
startModels((name) => {
  current = name;
  look();
});
if (data.models.length) {
  look();
  setInterval(() => document.hidden || look(), EVERY);
} else {
  showProblem("No model is loaded yet. Put a model file where the service looks for it.");
}
