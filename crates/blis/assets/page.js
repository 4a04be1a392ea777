// Draws the figures of a page. The data of a figure is the CSV behind its link, and nothing else.
(() => {
  "use strict";
  // The colours of the style, which differ in light and dark; then the same with dashes.
  const COLOURS = d3.range(7).map((index) => `var(--colour-${index})`);
  const DASHES = [null, "5 3", "2 2", "8 3 2 3"];
  const PARTS = ["gateway", "queue", "reload", "prefill", "recompute", "output"];
  const colour = (index) => COLOURS[index % COLOURS.length];
  const dash = (index) => DASHES[Math.floor(index / COLOURS.length) % DASHES.length];
  const unique = (values) => [...new Set(values)];
  const short = d3.format(".4~g");
  const STYLE = { fontSize: "11px" };

  function element(name, parent, text, kind) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  }

  function legend(parent, names, bars, note) {
    const list = element("div", parent, "", "legend");
    names.forEach((name, place) => {
      const index = bars ? PARTS.indexOf(name) : place;
      const entry = element("span", list);
      const sample = d3.select(entry).append("svg").attr("width", 22).attr("height", 10);
      sample.append("line").attr("x2", 22).attr("y1", 5).attr("y2", 5).attr("stroke", colour(index))
        .attr("stroke-width", bars ? 10 : 2.5).attr("stroke-dasharray", bars ? null : dash(index));
      entry.append(name);
    });
    if (note) element("span", list, note, "faint");
  }

  // Lines by `key`, each with its colour and dash.
  const lines = (rows, keys, key, options) => keys.map((name, index) => Plot.line(
    rows.filter((row) => row[key] === name),
    { ...options, stroke: colour(index), strokeWidth: 1.8, strokeDasharray: dash(index) }));

  // Whether an axis of such values should be logarithmic.
  const spread = (values) => {
    const [least, most] = d3.extent(values);
    return least > 0 && most / least > 20;
  };
  // The axis of means with intervals. Those are symmetric and may reach below zero where no value
  // can be: on a logarithmic axis they are cut off.
  const axis = (rows) => {
    const means = rows.map((row) => +row.mean);
    const ends = rows.flatMap((row) => [+row.low, +row.high]);
    const most = d3.max(ends) || 1;
    return spread(means)
      ? { ...log(means), domain: [d3.min(means) / 1.5, most], clamp: true }
      : { nice: true, ticks: 5, domain: [Math.min(0, d3.min(ends)), most] };
  };
  const end = (row, side, scale) => (scale.type ? Math.max(+row[side], scale.domain[0]) : +row[side]);
  const log = (values) => (spread(values)
    ? { type: "log", ticks: 4, tickFormat: "~s" } : { nice: true, ticks: 5, zero: true });

  // One label above each row of a horizontal plot, so that long names need no margin.
  const labels = (rows, text, width) => Plot.text(rows, {
    lineWidth: (width - 24) / 11, textOverflow: "ellipsis",
    y: (row) => row.row, text, frameAnchor: "left", textAnchor: "start", dy: -8, fill: "var(--ink)",
  });
  const horizontal = (rows, width, tall) => ({
    style: STYLE, width, height: 40 + tall * rows.length, marginLeft: 8, marginRight: 16, marginTop: 4, marginBottom: 34,
    y: { type: "band", axis: null, domain: rows.map((row) => row.row), padding: 0 },
  });

  const draw = {
    // Distributions: one line for each level of the first factor.
    cdf(rows, about) {
      const points = rows.flatMap((row) => d3.range(101).map((percent) => (
        { name: row.name, panel: row.panel, ms: +row[`p${percent}`], share: percent / 100 })));
      const names = unique(rows.map((row) => row.name));
      const values = points.map((point) => point.ms);
      return {
        names,
        panel: (panel, width) => {
          const shown = points.filter((point) => point.panel === panel);
          return Plot.plot({
            style: STYLE, width, height: Math.min(300, 120 + width * 0.35), marginLeft: 44, marginBottom: 36, marginRight: 16,
            x: { ...log(values), domain: d3.extent(values), label: about.unit, grid: true },
            y: { domain: [0, 1], tickFormat: "%", ticks: 5, label: "requests", grid: true },
            marks: [
              ...lines(shown, names, "name", { x: "ms", y: "share" }),
              Plot.tip(shown, Plot.pointer({
                x: "ms", y: "share", title: (point) => `${point.name}\n${short(point.share * 100)} % within ${short(point.ms)} ms`,
              })),
            ],
          });
        },
      };
    },

    // The parts of a time, stacked.
    parts(rows, about) {
      const names = PARTS.filter((part) => rows.some((row) => +row[part] > 0));
      const total = (row) => d3.sum(names, (part) => +row[part]);
      const peaks = d3.rollup(rows, (some) => d3.max(some, total), (row) => row.panel);
      const [least, most] = d3.extent(peaks.values());
      // Where one axis would make most bars too short to read, each panel has its own.
      const own = most > 5 * least;
      return {
        names, bars: true, note: own ? "(each panel has its own axis)" : "",
        panel: (panel, width) => {
          const shown = rows.filter((row) => row.panel === panel).map((row) => ({ ...row, row: row.name }));
          const bars = shown.flatMap((row) => names.map((part) => ({ row: row.row, part, ms: +row[part] })));
          return Plot.plot({
            ...horizontal(shown, width, 38),
            x: { label: about.unit, domain: [0, (own ? peaks.get(panel) : most) || 1], nice: true, ticks: 5, grid: true },
            marks: [
              Plot.barX(bars, Plot.stackX({
                x: "ms", y: "row", order: null, fill: (bar) => colour(PARTS.indexOf(bar.part)), insetTop: 19, insetBottom: 5,
                title: (bar) => `${bar.row}: ${bar.part} ${short(bar.ms)} ms`,
              })),
              labels(shown, (row) => `${row.name}: ${short(total(row))} ms`, width),
              Plot.ruleX([0]),
            ],
          });
        },
      };
    },

    // Means with intervals, one a row.
    interval(rows, about) {
      const known = rows.filter((row) => row.mean !== "");
      // Shares are read from nothing on, however small some are.
      const scale = about.linear
        ? { domain: [0, d3.max(known, (row) => +row.high) || 1], nice: true, ticks: 5 } : axis(known);
      return {
        panel: (panel, width) => {
          const shown = known.filter((row) => row.panel === panel).map((row) => ({ ...row, row: row.name }));
          return Plot.plot({
            ...horizontal(shown, width, 34),
            x: { ...scale, label: about.unit, grid: true },
            marks: [
              Plot.link(shown, { x1: (row) => end(row, "low", scale), x2: (row) => end(row, "high", scale), y: "row", dy: 6,
                stroke: COLOURS[0], strokeWidth: 2.5, strokeOpacity: 0.55 }),
              Plot.dot(shown, { x: (row) => +row.mean, y: "row", dy: 6, r: 4, fill: COLOURS[0],
                title: (row) => `${row.name}: ${short(+row.mean)} (${short(+row.low)} to ${short(+row.high)})` }),
              labels(shown, (row) => `${row.name}: ${short(+row.mean)}`, width),
            ],
          });
        },
      };
    },

    // Means with intervals over the levels of a swept field.
    sweep(rows, about) {
      const known = rows.filter((row) => row.mean !== "");
      const names = unique(rows.map((row) => row.name));
      const scale = axis(known);
      return {
        names,
        panel: (panel, width) => {
          const shown = known.filter((row) => row.panel === panel).map((row) => ({ ...row, mean: +row.mean }));
          return Plot.plot({
            style: STYLE, width, height: Math.min(300, 120 + width * 0.35), marginLeft: 52, marginBottom: 36, marginRight: 16,
            x: { type: "point", domain: unique(rows.map((row) => row.level)), label: about.swept },
            y: { ...scale, label: about.unit, grid: true },
            marks: [
              ...lines(shown, names, "name", { x: "level", y: "mean" }),
              ...names.map((name, index) => Plot.link(shown.filter((row) => row.name === name), {
                x: "level", y1: (row) => end(row, "low", scale), y2: (row) => end(row, "high", scale), stroke: colour(index), strokeOpacity: 0.6 })),
              Plot.dot(shown, { x: "level", y: "mean", r: 3, fill: (row) => colour(names.indexOf(row.name)),
                title: (row) => `${row.name}, ${row.level}: ${short(row.mean)} (${short(+row.low)} to ${short(+row.high)})` }),
            ],
          });
        },
      };
    },

    // Means with intervals over a number, and the bound that is asked of them.
    curve(rows, about) {
      const known = rows.filter((row) => row.mean !== "");
      const names = unique(rows.map((row) => row.name));
      const bound = about.bound ? [+about.bound] : [];
      const scale = axis([...known, ...bound.map((at) => ({ mean: at, low: at, high: at }))]);
      return {
        names,
        panel: (_, width) => {
          const shown = known.map((row) => ({ ...row, value: +row.value, mean: +row.mean }));
          const tint = (row) => colour(names.indexOf(row.name));
          return Plot.plot({
            style: STYLE, width, height: Math.min(300, 120 + width * 0.35), marginLeft: 52, marginBottom: 36, marginRight: 16,
            x: { label: about.across, ticks: 6, nice: true },
            y: { ...scale, label: about.unit, grid: true },
            marks: [
              Plot.ruleY(bound, { stroke: "var(--ink)", strokeDasharray: "3 2" }),
              ...lines(shown, names, "name", { x: "value", y: "mean" }),
              Plot.link(shown, { x: "value", y1: (row) => end(row, "low", scale), y2: (row) => end(row, "high", scale),
                stroke: tint, strokeOpacity: 0.6 }),
              Plot.dot(shown, { x: "value", y: "mean", r: 3.5, stroke: tint, strokeWidth: 1.5,
                fill: (row) => (row.verdict === "meets" ? tint(row) : "var(--paper)"),
                title: (row) => `${row.name}, ${short(row.value)} ${about.across}: ${row.verdict}\n${short(row.mean)} (${short(+row.low)} to ${short(+row.high)})` }),
            ],
          });
        },
      };
    },

    // What was measured call by call, and the best legal value so far.
    progress(rows, about) {
      const shown = rows.map((row) => ({ ...row, call: +row.call, value: +row.value }));
      const names = unique(rows.map((row) => row.name));
      const tint = (row) => colour(names.indexOf(row.name));
      const best = shown.filter((row) => row.best !== "").map((row) => ({ ...row, best: +row.best }));
      const hand = about.bound ? [+about.bound] : [];
      const values = shown.map((row) => row.value).concat(hand);
      return {
        names,
        panel: (_, width) => Plot.plot({
          style: STYLE, width, height: Math.min(320, 120 + width * 0.35), marginLeft: 52, marginBottom: 36, marginRight: 16,
          x: { label: "call", ticks: 6 },
          y: spread(values) ? { ...log(values), grid: true, label: about.unit } : { nice: true, ticks: 5, grid: true, label: about.unit },
          marks: [
            Plot.ruleY(hand, { stroke: "var(--ink)", strokeDasharray: "3 2" }),
            ...names.map((name, index) => Plot.line(best.filter((row) => row.name === name), {
              x: "call", y: "best", curve: "step-after", stroke: colour(index), strokeWidth: 2, strokeDasharray: dash(index) })),
            Plot.dot(shown, { x: "call", y: "value", r: 3, stroke: tint, strokeOpacity: 0.7, fillOpacity: 0.7,
              fill: (row) => (row.legal === "yes" ? tint(row) : "var(--paper)"),
              title: (row) => `${row.name}, call ${row.call}: ${short(row.value)}${row.legal === "yes" ? "" : ", not legal"}` }),
          ],
        }),
      };
    },

    // Two objectives of points, as measured and on fresh seeds.
    front(rows, about) {
      const shown = rows.map((row) => ({ ...row, x: +row.x, y: +row.y }));
      const names = unique(rows.map((row) => row.name)).filter((name) => name !== "other");
      const tint = (row) => colour(names.indexOf(row.name));
      const others = shown.filter((row) => row.name === "other");
      const main = shown.filter((row) => row.name !== "other");
      const fresh = main.filter((row) => row.fresh_x !== "").map((row) => ({ ...row, fx: +row.fresh_x, fy: +row.fresh_y }));
      const scale = (side, other) => {
        const values = shown.map((row) => row[side]).concat(fresh.map((row) => row[other]));
        return spread(values) ? { ...log(values), grid: true } : { nice: true, ticks: 5, grid: true };
      };
      const told = (row) => `${row.name}${row.call ? `, call ${row.call}` : ""}\n${short(row.x)}, ${short(row.y)}`;
      return {
        names,
        panel: (_, width) => Plot.plot({
          style: STYLE, width, height: Math.min(340, 140 + width * 0.4), marginLeft: 56, marginBottom: 36, marginRight: 20,
          x: { ...scale("x", "fx"), label: about.across },
          y: { ...scale("y", "fy"), label: about.unit },
          marks: [
            Plot.dot(others, { x: "x", y: "y", r: 2, fill: "var(--faint)", fillOpacity: 0.5, title: told }),
            Plot.link(fresh, { x1: "x", y1: "y", x2: "fx", y2: "fy", stroke: tint, strokeOpacity: 0.5 }),
            Plot.dot(main, { x: "x", y: "y", r: 4, stroke: tint, strokeWidth: 1.4, title: told }),
            Plot.dot(fresh, { x: "fx", y: "fy", r: 3.5, fill: tint,
              title: (row) => `${told(row)}\nfresh: ${short(row.fx)}, ${short(row.fy)}` }),
          ],
        }),
      };
    },

    // Ranges of numbers, each from its least to its greatest value.
    ranges(rows, about) {
      const shown = rows.map((row) => ({ ...row, row: row.name }));
      const bar = (low, high, width) => Plot.link(shown, { x1: (row) => +row[low], x2: (row) => +row[high], y: "row", dy: 6,
        stroke: COLOURS[0], strokeWidth: width, strokeOpacity: 0.45 });
      return {
        panel: (_, width) => Plot.plot({
          ...horizontal(shown, width, 34),
          x: { domain: [0, 1], ticks: 5, tickFormat: "%", label: about.unit, grid: true },
          marks: [
            bar("low", "high", 2), bar("near_low", "near_high", 7),
            Plot.tickX(shown, { x: (row) => +row.hand, y: "row", stroke: "var(--ink)", insetTop: 16, insetBottom: 6 }),
            Plot.dot(shown, { x: (row) => +row.found, y: "row", dy: 6, r: 4, fill: COLOURS[1] }),
            labels(shown, (row) => `${row.name}: ${short(+row.min)} to ${short(+row.max)}${row.log === "true" ? " (logarithmic)" : ""}`, width),
          ],
        }),
      };
    },

    // The effects that a claim is about, and what it asks of them.
    effect(rows, about) {
      const known = rows.filter((row) => row.mean !== "").map((row, index) => ({ ...row, row: index }));
      const bounds = known.flatMap((row) => [row.at_least, row.at_most].filter((bound) => bound !== "")
        .map((bound) => ({ row: row.row, bound: +bound })));
      const ends = known.flatMap((row) => [+row.low, +row.high]).concat(bounds.map((one) => one.bound));
      const [least, most] = d3.extent(ends);
      const room = (most - least || Math.abs(most) || 1) * 0.08;
      const logarithmic = about.scale === "ratio" && spread(ends);
      return {
        panel: (_, width) => Plot.plot({
          ...horizontal(known, width, 36),
          style: { ...STYLE, color: "var(--ink)" },
          x: logarithmic ? { type: "log", ticks: 4, tickFormat: "~g", label: about.unit }
            : { domain: [least - room, most + room], ticks: 5, label: about.unit },
          marks: [
            Plot.tickX(bounds, { x: "bound", y: "row", stroke: "var(--ink)", strokeDasharray: "3 2", insetTop: 15 }),
            Plot.link(known, { x1: (row) => +row.low, x2: (row) => +row.high, y: "row", dy: 6,
              stroke: "var(--tone)", strokeWidth: 3, strokeOpacity: 0.6 }),
            Plot.dot(known, { x: (row) => +row.mean, y: "row", dy: 6, r: 4.5, fill: "var(--tone)",
              title: (row) => `${row.effect}: ${short(+row.mean)} (${short(+row.low)} to ${short(+row.high)})` }),
            ...(known.length > 1 ? [labels(known, "effect", width)] : []),
          ],
        }),
      };
    },
  };

  // A level as a title: of a swept field, the last step of its path says which.
  const said = (factor, level) => (["arm", "workload"].includes(factor)
    ? level : `${factor.split(".").pop()} ${level}`);

  function show(figure) {
    const about = figure.dataset;
    const csv = decodeURIComponent(figure.querySelector("a[download]").href.replace(/^[^,]*,/, ""));
    // By rows, because the parser that makes objects writes code, which the page forbids.
    const [columns, ...lines] = d3.csvParseRows(csv);
    const rows = lines.map((line) => Object.fromEntries(columns.map((column, index) => [column, line[index]])));
    const others = JSON.parse(about.panels || "[]");
    for (const row of rows) {
      row.panel = others.map((column) => said(column, row[column])).join(", ");
      row.name = about.names ? row[about.names] : "all";
      row.level = about.swept ? row[about.swept] : "";
    }
    const drawn = draw[about.plot](rows, about);
    const canvas = figure.querySelector(".canvas");
    canvas.replaceChildren();
    if (drawn.names && (drawn.bars || about.names)) legend(canvas, drawn.names, drawn.bars, drawn.note);
    const panels = unique(rows.map((row) => row.panel));
    const grid = element("div", canvas, "", panels.length > 1 ? "panels" : "panels one");
    const boxes = panels.map((panel) => {
      const box = element("div", grid, "", "panel");
      if (panel) element("h4", box, panel);
      return box;
    });
    const width = Math.max(220, Math.min(760, Math.floor(boxes[0].clientWidth)));
    boxes.forEach((box, index) => box.append(drawn.panel(panels[index], width)));
  }

  function all() {
    for (const figure of document.querySelectorAll("figure[data-plot]")) {
      try {
        show(figure);
      } catch (error) {
        const canvas = figure.querySelector(".canvas");
        canvas.replaceChildren();
        element("p", canvas, `This could not be drawn (${error.message}); its data are behind the link.`, "failed");
        console.error(error);
      }
    }
  }

  let width = window.innerWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(all);
  });
  all();
})();
