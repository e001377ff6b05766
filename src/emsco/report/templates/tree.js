/* A design that branches, as a tree: boxes buy, arrows say how many cases go on and what they pay next. */

const TREE = { gap: 18, line: 17, arrow: 52, pad: 10, least: 150, letter: 6.7 };

/** Lines of text that fit a width; a word that is too long stands alone. */
function folded(text, width) {
  const most = Math.max(Math.floor(width / TREE.letter), 8);
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.length - 1;
    if (lines[last] && lines[last].length + word.length + 1 > most) lines.push(word);
    else lines[last] += (lines[last] ? " " : "") + word;
  }
  return lines.map((line) => (line.length > most + 2 ? `${line.slice(0, most + 1)}…` : line));
}

/** A box with lines of text; the first ones are bold. */
function treeBox(x, y, width, bold, plain, kind) {
  const rows = [...bold.flatMap((text) => folded(text, width - 2 * TREE.pad).map((line) => [line, "strong"])),
    ...plain.flatMap((text) => folded(text, width - 2 * TREE.pad).map((line) => [line, ""]))];
  const height = rows.length * TREE.line + 2 * TREE.pad - 4;
  const texts = rows.map(([line, weight], k) =>
    s("text", { x: x + TREE.pad, y: y + TREE.pad + 10 + k * TREE.line, class: weight }, line));
  return { height, node: s("g", { class: kind }, s("rect", { x, y, width, height, rx: 8 }), texts) };
}

/** An arrow downwards with words beside it. */
function treeArrow(x, top, bottom, words, width) {
  const lines = words.flatMap((text) => folded(text, width));
  const first = (top + bottom) / 2 - ((lines.length - 1) * 14) / 2 + 3;
  return s(
    "g", { class: "arrow" },
    s("path", { class: "shaft", d: `M${x} ${top}V${bottom - 6}` }),
    s("path", { class: "head", d: `M${x - 5} ${bottom - 8}L${x} ${bottom}L${x + 5} ${bottom - 8}Z` }),
    lines.map((line, k) => s("text", { x: x + 9, y: first + 14 * k, class: "halo-line" }, line)),
  );
}

const labelled = (stage) =>
  stage.reached === undefined ? [] : [
    `${whole(stage.reached)} reach it, ${whole(stage.answered)} get a label` +
      (stage.right === null || !stage.answered ? "" : ` (${whole(stage.right)} correct)`),
  ];

/** The picture of a tree; branches side by side if there is room, else one below the other. */
function treePicture(tree, width) {
  const { root, branches } = tree;
  const n = branches.length;
  const beside = (width - (n - 1) * TREE.gap) / n >= TREE.least;
  const indent = beside ? 0 : 28;
  const each = beside ? (width - (n - 1) * TREE.gap) / n : width - indent;
  const rootWidth = Math.min(width, 340);
  const rootX = beside ? (width - rootWidth) / 2 : 0;
  const counted = tree.rows !== null;
  const nodes = [];
  const top = treeBox(rootX, 1, rootWidth, [`Stage 1: ${root.buys.join(", ")}`],
    [`price ${money(root.price)}`, ...labelled(root)], "root");
  nodes.push(top.node);
  let bottom = top.height + 1;
  const fork = bottom + 16;
  let below = fork;
  branches.forEach((branch, b) => {
    const x = beside ? b * (each + TREE.gap) : indent;
    const words = treeBox(x, 0, each, [branch.words], counted ? [`${whole(branch.n_rows)} of ${plural(tree.rows, "case")}`] : [], "route");
    let y = beside ? fork + 20 : below + (b ? 26 : 8);
    const middle = x + Math.min(each / 2, beside ? each / 2 : 40);
    if (beside) {
      const from = rootX + rootWidth / 2;
      nodes.unshift(s("path", { class: "shaft", d: `M${from} ${bottom}V${fork}H${middle}V${y}` }));
    } else {
      nodes.unshift(s("path", { class: "shaft", d: `M12 ${bottom}V${y + 18}H${x}` }));
    }
    nodes.push(s("g", { transform: `translate(0 ${y})` }, words.node));
    y += words.height;
    let paid = root.paid;
    branch.stages.forEach((stage, j) => {
      const going = counted ? [`${plural(stage.reached, "case")} pay ${money(stage.price)}`] : [`pays ${money(stage.price)}`];
      nodes.push(treeArrow(middle, y, y + TREE.arrow, going, each - (middle - x) - 12));
      y += TREE.arrow;
      const box = treeBox(x, 0, each, [`Stage ${j + 2}: ${stage.buys.join(", ")}`], [`so far ${money(stage.paid)}`, ...labelled(stage)], "buy");
      nodes.push(s("g", { transform: `translate(0 ${y})` }, box.node));
      y += box.height;
      paid = stage.paid;
    });
    const end = [
      branch.stages.length ? null : "Nothing more is bought.",
      counted && branch.rejected ? `${whole(branch.rejected)} get no label and pay ${money(paid)}.` : null,
    ].filter((text) => text !== null);
    end.flatMap((text) => folded(text, each)).forEach((line) => {
      y += TREE.line;
      nodes.push(s("text", { x: x + 4, y, class: "end" }, line));
    });
    below = beside ? Math.max(below, y) : y;
  });
  const label = `A tree: stage 1 buys ${root.buys.join(", ")}; then ` +
    branches.map((branch) => `if ${branch.words}: ${branch.stages.map(({ buys }) => buys.join(", ")).join(" | ") || "nothing more"}`).join("; ");
  return canvas(width, below + 14, { role: "img", "aria-label": label, class: "tree" }, nodes);
}

/** A tree in words, on one line. */
const treeWords = ({ root, branches }) =>
  `${root.buys.join(", ")}, then ${branches
    .map(({ words, stages }) => `if ${words}: ${stages.map(({ buys }) => buys.join(", ")).join(" | ") || "nothing more"}`)
    .join("; ")}`;
