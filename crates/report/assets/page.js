// Draws the charts of a page. The data of a chart is the CSV behind its link, and nothing else.
(() => {
  "use strict";
  // The colours of the style, which differ in light and dark; then the same with dashes.
  const COLOURS = d3.range(7).map((index) => `var(--colour-${index})`);
  const DASHES = [null, "5 3", "2 2", "8 3 2 3"];
  const colour = (index) => COLOURS[index % COLOURS.length];
  const dash = (index) => DASHES[Math.floor(index / COLOURS.length) % DASHES.length];
  const unique = (values) => [...new Set(values)];
  // Four digits, thousands grouped, never an exponent.
  const short = (value) => value.toLocaleString("en", { maximumSignificantDigits: 4 });
  const STYLE = { fontSize: "11px" };

  function element(name, parent, text, kind) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  }

  function legend(parent, names, bars) {
    const list = element("div", parent, "", "legend");
    names.forEach((name, index) => {
      const entry = element("span", list);
      const sample = d3.select(entry).append("svg").attr("width", 22).attr("height", 10);
      sample.append("line").attr("x2", 22).attr("y1", 5).attr("y2", 5).attr("stroke", colour(index))
        .attr("stroke-width", bars ? 10 : 2.5).attr("stroke-dasharray", bars ? null : dash(index));
      entry.append(name);
    });
  }

  // An axis of numbers. Intervals are symmetric and may reach below zero where no value can be: on
  // a logarithmic axis they are cut off.
  function axis(kind, values, ends, label) {
    const [least, most] = d3.extent([...values, ...ends]);
    const [smallest, greatest] = d3.extent(values);
    const tickFormat = (value) => short(value);
    if (kind === "fit" && smallest > 0 && greatest / smallest > 20) {
      return { type: "log", domain: [smallest / 1.3, most], clamp: true, ticks: 4, label, grid: true,
        tickFormat: (value) => (/^[125]/.test(value.toExponential()) ? short(value) : "") };
    }
    const room = kind === "tight" ? (most - least || Math.abs(most) || 1) * 0.08 : 0;
    const domain = kind === "tight" ? [least - room, most + room] : [Math.min(0, least), most || 1];
    return { domain, nice: kind !== "tight", ticks: 5, label, grid: true, tickFormat };
  }

  const told = (row) => [
    [row.series, row.label].filter(Boolean).join(", "),
    `${row.at}: ${row.value === null ? "" : short(row.value)}${row.low === null ? "" : ` (${short(row.low)} to ${short(row.high)})`}`,
  ].filter(Boolean).join("\n");

  const filled = (row) => (row.mark === "ring" ? "var(--paper)" : row.tint);

  // Values upwards: lines, points and steps.
  function upright(rows, about, value, width) {
    const named = about.atScale === "names";
    const x = named ? { type: "point", domain: unique(rows.map((row) => row.at)), label: about.at }
      : { ...axis(about.atScale, rows.map((row) => row.at), [], about.at), grid: false };
    const joined = about.form !== "points";
    const bare = (row) => row.mark === "none";
    const series = d3.groups(rows, (row) => row.series);
    const line = (rows, more) => Plot.line(rows, { x: "at", y: "value", stroke: rows[0].tint,
      strokeWidth: 1.8, strokeDasharray: rows[0].dash, ...more });
    return {
      style: STYLE, width, height: Math.min(320, 120 + width * 0.35), marginLeft: 56, marginBottom: 36, marginRight: 16,
      x, y: value,
      marks: [
        Plot.ruleY(about.bound ? [+about.bound] : [], { stroke: "var(--ink)", strokeDasharray: "3 2" }),
        ...(joined ? series.map(([, own]) => line(own)) : []),
        ...(joined ? [] : series.filter(([, own]) => own.every(bare)).map(([, own]) => line(own, { curve: "step-after" }))),
        ...(joined ? [] : [Plot.line(rows.filter((row) => row.label && !bare(row)),
          { x: "at", y: "value", z: (row) => row.series + row.label, stroke: "tint", strokeOpacity: 0.5 })]),
        Plot.link(rows.filter((row) => row.low !== null), { x: "at", y1: "low", y2: "high", stroke: "tint", strokeOpacity: 0.6 }),
        Plot.dot(rows.filter((row) => !bare(row)), { x: "at", y: "value", r: 3, fill: filled, stroke: "tint", title: told }),
        Plot.tip(rows.filter(bare), Plot.pointer({ x: "at", y: "value", title: told })),
      ],
    };
  }

  // Values to the right: a row for each place, its name above it, so that long names need no margin.
  function flat(rows, about, value, width) {
    const places = unique(rows.map((row) => row.at));
    const bars = about.form === "bars";
    const several = unique(rows.map((row) => row.series)).length;
    const tall = bars ? 38 : 22 + 10 * several;
    const total = (at) => d3.sum(rows.filter((row) => row.at === at), (row) => row.value);
    const shifted = (rows) => d3.groups(rows, (row) => row.place).map(([place, own]) => [own, 10 * place + 21 - tall / 2]);
    const known = rows.filter((row) => row.value !== null);
    return {
      style: { ...STYLE, color: "var(--ink)" }, width, height: 40 + tall * places.length,
      marginLeft: 8, marginRight: 16, marginTop: 4, marginBottom: 34,
      y: { type: "band", axis: null, domain: places, padding: 0 },
      x: value,
      marks: [
        Plot.text(places, { y: (at) => at, text: (at) => (bars ? `${at}: ${short(total(at))}` : at), frameAnchor: "left", textAnchor: "start",
          dy: 7 - tall / 2, lineWidth: (width - 24) / 11, textOverflow: "ellipsis", fill: "var(--ink)" }),
        Plot.ruleX(about.bound ? [+about.bound] : [], { stroke: "var(--ink)", strokeDasharray: "3 2" }),
        ...(bars ? [Plot.barX(rows, Plot.stackX({ x: "value", y: "at", order: null, fill: "tint", insetTop: 19, insetBottom: 5, title: told }))] : []),
        ...(bars ? [] : shifted(rows.filter((row) => row.low !== null)).map(([own, dy]) => Plot.link(own,
          { x1: "low", x2: "high", y: "at", dy, stroke: "tint", strokeWidth: 2.5, strokeOpacity: 0.55 }))),
        ...(bars ? [] : shifted(known.filter((row) => row.mark === "tick")).map(([own, dy]) => Plot.dot(own,
          { x: "value", y: "at", dy, symbol: "times", r: 4, stroke: "var(--ink)", title: told }))),
        ...(bars ? [] : shifted(known.filter((row) => !["tick", "none"].includes(row.mark))).map(([own, dy]) => Plot.dot(own,
          { x: "value", y: "at", dy, r: 4, fill: filled, stroke: "tint", title: told }))),
      ],
    };
  }

  function show(figure) {
    const about = figure.dataset;
    const csv = decodeURIComponent(figure.querySelector("a[download]").href.replace(/^[^,]*,/, ""));
    // By rows, because the parser that makes objects writes code, which the page forbids.
    const [columns, ...lines] = d3.csvParseRows(csv);
    const number = (text) => (text ? +text : null);
    const rows = lines.map((line) => {
      const { panel = "", series = "", at, value, low, high, mark = "", label = "" } =
        Object.fromEntries(columns.map((column, index) => [column, line[index]]));
      return { panel, series, at: about.atScale === "names" ? at : +at, value: number(value),
        low: number(low), high: number(high), mark, label };
    });
    const names = unique(rows.map((row) => row.series));
    for (const row of rows) {
      row.place = names.indexOf(row.series);
      row.tint = colour(row.place);
      row.dash = dash(row.place);
    }
    const canvas = figure.querySelector(".canvas");
    canvas.replaceChildren();
    const bars = about.form === "bars";
    if (names.length > 1 || names[0]) legend(canvas, names, bars);
    const panels = unique(rows.map((row) => row.panel));
    const grid = element("div", canvas, "", panels.length > 1 ? "panels" : "panels one");
    const boxes = panels.map((panel) => {
      const box = element("div", grid, "", "panel");
      if (panel) element("h4", box, panel);
      return box;
    });
    const width = Math.max(220, Math.min(760, Math.floor(boxes[0].clientWidth)));
    const values = bars ? d3.rollups(rows, (own) => d3.sum(own, (row) => row.value), (row) => `${row.panel} ${row.at}`).map(([, sum]) => sum)
      : rows.map((row) => row.value).filter((value) => value !== null);
    const ends = rows.flatMap((row) => [row.low, row.high]).concat(about.bound ? [+about.bound] : []).filter((end) => end !== null);
    const scale = axis(about.valueScale, values, ends, about.value);
    for (const row of rows.filter((row) => row.low !== null && scale.type)) row.low = Math.max(row.low, scale.domain[0]);
    const draw = ["rows", "bars"].includes(about.form) ? flat : upright;
    boxes.forEach((box, index) => {
      const own = rows.filter((row) => row.panel === panels[index]);
      box.append(Plot.plot(draw(own, about, scale, width)));
    });
  }

  function all() {
    for (const figure of document.querySelectorAll("figure[data-form]")) {
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
