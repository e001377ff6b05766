/* What to expect on new rows of the point that fit chose. */

const FIGURES = [
  { key: "accuracy", name: "Accuracy", text: percent, share: true },
  { key: "coverage", name: "Coverage", text: percent, share: true },
  { key: "mean_cost", name: "Mean cost per case", text: money, share: false },
];

/** An interval in words: 56.2 to 78.3 %. */
function spanText([low, high], text) {
  if (low === null || high === null) return "";
  const ends = [text(low), text(high)];
  return ends[0] === ends[1] ? ends[0] : `${ends[0].replace("\u00a0%", "")} to ${ends[1]}`;
}

const exact = ([low, high]) => low === high;

function drawOutlook() {
  const { outlook } = data;
  byId("outlook").hidden = outlook === null;
  if (outlook === null) return;
  const { validation } = points[outlook.point];
  const found = outlook.new_rows;
  const heads = [
    `${data.judged} rows, which chose the point`, "expected on new rows, in the long run",
    found && `expected on ${whole(found.rows)} new rows`, found && `found on the ${whole(found.rows)} held-out rows`,
  ].filter(Boolean);
  const cell = (k, ...content) => h("td", { "data-label": heads[k] }, h("div", null, content));
  const rows = FIGURES.map(({ key, name, text, share }) => {
    const expected = outlook[key];
    const spans = [expected.interval_95, found && found[key].interval_95].filter(Boolean);
    const axis = fitAxis(spans, share);
    const ends = share && axis.high - axis.low >= 0.06 ? wholePercent : share ? percent : number;
    const verdict = found && (found[key].within ? h("span", { class: "fine" }, "as expected") : problem("outside"));
    return h(
      "tr", null,
      h("th", { scope: "row" }, name),
      cell(0, text(validation[key === "mean_cost" ? "cost" : key])),
      cell(1, h("b", null, text(expected.value)),
        exact(expected.interval_95) ? null : h("span", { class: "range" }, ` ${spanText(expected.interval_95, text)}`),
        intervalMark(expected.value, expected.interval_95, axis), axisMark(axis, ends)),
      found && cell(2, spanText(found[key].interval_95, text),
        intervalMark(found[key].found, found[key].interval_95, axis), axisMark(axis, ends)),
      found && cell(3, h("b", null, found[key].found === null ? "–" : text(found[key].found)), " ", verdict),
    );
  });
  byId("outlook-h").textContent = `Point ${outlook.point}: what to expect on new rows`;
  byId("outlook-lead").textContent =
    `${whole(outlook.rows)} ${judgedRows} chose this point among ${whole(points.length)} points, so their figures are a little too ` +
    "good. For the expected figures, each row was labelled by a design that was chosen and trained without it. " +
    "Intervals: 95\u00a0%.";
  byId("outlook-table").replaceChildren(
    h("thead", null, h("tr", null, h("td"), heads.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, rows),
  );
  byId("outlook-words").textContent =
    outlook.in_words.slice(1).join(" ") + (found ? ` The dot on a bar of ${whole(found.rows)} rows is the figure found.` : "");
}
